# The image of every Airflow service in docker-compose.yaml.
#
# Base: plain Python, not apache/airflow. requirements.txt is a complete lock that contains Airflow
# itself; on top of apache/airflow it would replace half of a preinstalled environment and leave the
# other half (some forty providers) at versions nobody tested beside it. Here the image holds the
# very packages the tests ran with, on the same Python and Debian. The official entrypoint is not
# missed: Compose waits for healthy services, `init: true` reaps children, `init` migrates.
ARG PYTHON_IMAGE=python:3.11.15-slim-bookworm

FROM ${PYTHON_IMAGE} AS packages
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/venv
# --only-binary: nothing is compiled, so neither stage needs a compiler.
COPY requirements.txt /tmp/requirements.txt
RUN /opt/venv/bin/pip install --only-binary :all: --requirement /tmp/requirements.txt \
    && /opt/venv/bin/pip check

FROM ${PYTHON_IMAGE}
# 50000:0 are the ids of the official Airflow image, so volumes can move between the two.
RUN useradd --uid 50000 --gid 0 --no-create-home --home-dir /opt/cusyn/var cusyn
COPY --from=packages /opt/venv /opt/venv

WORKDIR /opt/cusyn
COPY include ./include
COPY plugins ./plugins
COPY dags ./dags
COPY tools ./tools
# Its digest goes into every manifest.
COPY requirements.txt ./

# A named volume takes its owner and mode from the folder it is first mounted on. The code stays
# root's: a task cannot rewrite it.
RUN install --directory --owner 50000 --group 0 --mode 0750 \
      var var/airflow var/airflow/logs var/protected var/work var/keys var/checkpoints var/releases \
      var/raw var/access

# As `git describe --always --dirty` says it: the image holds no git folder.
ARG CUSYN_CODE_REVISION=unknown
ENV CUSYN_CODE_REVISION=${CUSYN_CODE_REVISION} \
    PATH=/opt/venv/bin:$PATH \
    PYTHONPATH=/opt/cusyn:/opt/cusyn/plugins \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    AIRFLOW_HOME=/opt/cusyn/var/airflow

USER 50000:0
EXPOSE 8080
CMD ["airflow", "version"]
