"""The Streamlit explorer. It reads SQL views only."""
