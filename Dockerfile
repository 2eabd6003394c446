# PyriteMQ in a container, laid out as apache/rocketmq's image is: the same user id, home, folders and
# commands, so that a compose file of that image works when only the image's name changes.
#
#   docker build -t pyritemq/pyritemq .
#   docker run -p 9876:9876 -p 10911:10911 pyritemq/pyritemq          (name server and broker in one)
#
# No RUN needs more than a shell and Python, so that any base with these two will do.
ARG PYTHON_IMAGE=python:3.13-slim

FROM ${PYTHON_IMAGE} AS build
# Empty: from PyPI. In a place without it: "--no-index --find-links /src/wheels".
ARG PIP_OPTIONS=""
COPY . /src
RUN python3 -m venv /opt/pyritemq && \
    /opt/pyritemq/bin/python -m pip install --no-cache-dir --disable-pip-version-check $PIP_OPTIONS /src && \
    /opt/pyritemq/bin/python -m pip uninstall --yes --quiet pip && \
    python3 /src/container/make_home.py /home/rocketmq

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="PyriteMQ" \
      org.opencontainers.image.description="A drop-in server for RocketMQ clients" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN echo 'rocketmq:x:3000:0:RocketMQ:/home/rocketmq:/bin/sh' >> /etc/passwd
COPY --from=build /opt/pyritemq /opt/pyritemq
# Group 0 may do what the user may: a container that is started with another uid works as well.
COPY --from=build --chown=3000:0 /home/rocketmq /home/rocketmq
ENV HOME=/home/rocketmq \
    ROCKETMQ_VERSION=5.5.0 \
    ROCKETMQ_HOME=/home/rocketmq/rocketmq-5.5.0 \
    PATH=/home/rocketmq/rocketmq-5.5.0/bin:/opt/pyritemq/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /home/rocketmq/rocketmq-5.5.0/bin
USER 3000
# Name server; broker, its VIP channel and its replicas; operations (metrics, health).
EXPOSE 9876 10909 10911 10912 5557
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 CMD ["healthcheck"]
CMD ["pyritemq", "serve", "--store", "/home/rocketmq/store"]
