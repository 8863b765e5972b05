"""What `gnomon doctor` looks at before a run: each module examines one part and says what to do."""
