ARG BUILDER_IMAGE=docker.io/library/golang:1.26
ARG BASE_IMAGE=gcr.io/distroless/static:nonroot

# Cross-compile: the compiler runs on the build platform, without emulation.
FROM --platform=$BUILDPLATFORM ${BUILDER_IMAGE} AS builder
WORKDIR /src
# Download modules first: the layer stays cached until go.sum changes.
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

# The image of the scorecard tests: "docker build --target scorecard". Separate stages, so that building the manager
# (the last stage) does not compile the tests.
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
# The tests compare the bundle with these. They are released with the operator, so they contain all earlier releases.
COPY --from=scorecard-builder /src/config/catalog/released /released
COPY --from=scorecard-builder /memcached-operator-scorecard /usr/local/bin/memcached-operator-scorecard
# operator-sdk sets the pod's command to "memcached-operator-scorecard NAME", which is found in the PATH.
ENV PATH=/usr/local/bin:/usr/bin:/bin
USER 65532:65532

FROM ${BASE_IMAGE} AS manager
ARG BASE_IMAGE
ARG VERSION=devel
ARG COMMIT=unknown
# OpenShift certification requires the labels from "name" on.
LABEL org.opencontainers.image.title="memcached-operator" \
      org.opencontainers.image.description="Kubernetes operator for Memcached, Foo and CronJob" \
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
      summary="Kubernetes operator for Memcached, Foo and CronJob" \
      description="Runs memcached for production, and two examples: Foo (nginx in a Deployment) and CronJob (Jobs)."
COPY LICENSE /licenses/LICENSE
COPY --from=builder /manager /manager
# A numeric ID, because the kubelet cannot verify runAsNonRoot for a user name.
USER 65532:65532
ENTRYPOINT ["/manager"]
