ARG BUILDER_IMAGE=docker.io/library/golang:1.26
ARG BASE_IMAGE=gcr.io/distroless/static:nonroot

# The compiler runs on the machine that builds and compiles for the one that is asked for: no emulation.
FROM --platform=$BUILDPLATFORM ${BUILDER_IMAGE} AS builder
WORKDIR /src
# Modules first: this layer lasts until go.sum changes.
COPY go.mod go.sum ./
RUN go mod download
COPY cmd/ cmd/
COPY api/ api/
COPY internal/ internal/
ARG VERSION=devel
ARG COMMIT=unknown
ARG TARGETOS
ARG TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w -X main.version=$VERSION -X main.commit=$COMMIT" -o /manager ./cmd

# The tests of the scorecard: "docker build --target scorecard". They are a stage of their own, so that building the manager,
# which is the last stage, does not compile them.
FROM builder AS scorecard-builder
COPY test/bundle/ test/bundle/
COPY test/jobstate/ test/jobstate/
COPY test/kinds/ test/kinds/
COPY test/scorecard/ test/scorecard/
COPY config/catalog/ config/catalog/
ARG TARGETOS
ARG TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w" -o /memcached-operator-scorecard ./test/scorecard && \
    mkdir -p config/catalog/released

FROM ${BASE_IMAGE} AS scorecard
COPY LICENSE /licenses/LICENSE
# What the bundle is compared with. The tests are released with the operator, so they know all releases before it.
COPY --from=scorecard-builder /src/config/catalog/released /released
COPY --from=scorecard-builder /memcached-operator-scorecard /usr/local/bin/memcached-operator-scorecard
# operator-sdk runs "memcached-operator-scorecard NAME" by the PATH of the image, as the command of the pod.
ENV PATH=/usr/local/bin:/usr/bin:/bin
USER 65532:65532

FROM ${BASE_IMAGE} AS manager
ARG BASE_IMAGE
ARG VERSION=devel
ARG COMMIT=unknown
# The second half is what certification for OpenShift asks for.
LABEL org.opencontainers.image.title="memcached-operator" \
      org.opencontainers.image.description="Kubernetes operator for Memcached and Foo" \
      org.opencontainers.image.source="https://github.com/example/memcached-operator" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$COMMIT" \
      org.opencontainers.image.base.name="$BASE_IMAGE" \
      name="memcached-operator" \
      vendor="The memcached-operator authors" \
      maintainer="memcached-operator@example.com" \
      version="$VERSION" \
      release="$COMMIT" \
      summary="Kubernetes operator for Memcached and Foo" \
      description="Runs memcached nodes fit for production, and nginx for the Foo of the sample-controller."
COPY LICENSE /licenses/LICENSE
COPY --from=builder /manager /manager
# By number: the kubelet cannot tell of a name that it is not root.
USER 65532:65532
ENTRYPOINT ["/manager"]
