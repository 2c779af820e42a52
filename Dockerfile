# Jupyter with the gonbatch kernel, the submit command and XLA's CPU plugin.
#
#   docker build -t gonbatch .
#   docker run --rm -p 8888:8888 -v "$PWD/notebooks:/home/gopher/notebooks" gonbatch
#
# The kernel compiles cells, so the image keeps Go, a C compiler and the module cache: cells compile
# without a network.

FROM golang:1.26.8-bookworm AS build
WORKDIR /opt/gonbatch
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN GOBIN=/opt/bin go install tool \
 && GOBIN=/opt/bin go install golang.org/x/tools/gopls@v0.21.1 \
 && go build -o /opt/bin/ ./cmd/submit

FROM golang:1.26.8-bookworm
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3 python3-venv openmpi-bin libopenmpi3 libturbojpeg0 slurm-client munge tini \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --shell /bin/bash gopher
COPY --from=build /opt/bin /opt/bin
COPY --from=build /opt/gonbatch /opt/gonbatch
COPY --from=build --chown=gopher:gopher /go/pkg/mod /go/pkg/mod
RUN python3 -m venv /opt/jupyter \
 && /opt/jupyter/bin/pip install --no-cache-dir -r /opt/gonbatch/kernel/jupyter-requirements.txt \
 && /opt/bin/submit kernel install --spec-only --prefix /opt/jupyter
ENV PATH=/opt/jupyter/bin:/opt/bin:$PATH \
    GONBATCH_SOURCE=/opt/gonbatch \
    GOFLAGS=-buildvcs=false
USER gopher
WORKDIR /home/gopher
# This downloads the plugin and the MNIST data to the user's cache, and fills Go's build cache.
RUN cp -r /opt/gonbatch/notebooks . \
 && submit --local notebooks/mnist.ipynb -- -epochs 1 \
 && rm -rf runs
EXPOSE 8888
ENTRYPOINT ["tini", "--"]
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--port=8888", "--no-browser"]
