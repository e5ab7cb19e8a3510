# syntax=docker/dockerfile:1
# Two images: `--target operator`, which is the last and so the default, and `--target service`. How they are built, checked and kept current:
# docs/how-to/build-the-image.md. The bases are by digest, so that the same commit makes the same image; either may come from a mirror.
# Builds: it needs Node and npm. Its version is that of the package `node`, which everything is tested with.
ARG NODE_IMAGE=node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6
# Runs: it needs glibc and libstdc++, for Node and the BLS library. It has no shell and no package manager.
ARG BASE_IMAGE=gcr.io/distroless/cc-debian12:nonroot@sha256:9dac0a79194e45a7da0158a9c6da57b217585af0786db3845d1f0ec1a0dd182f

# .dockerignore has the few files that are taken.
FROM ${NODE_IMAGE} AS build
WORKDIR /build
COPY . .
RUN node scripts/image/main.ts tools compile operator service clean

# The staking service: with PostgreSQL in WASM, for the embedded database.
FROM ${BASE_IMAGE} AS service
COPY --from=build /usr/local/bin/node /usr/local/bin/node
COPY --from=build /image/service /app
# All that it writes, and only where it has no PostgreSQL server: a volume belongs here. The root file system may be read-only.
COPY --from=build --chown=65532:65532 /image/data /var/lib/staking-service
ENV NODE_ENV=production
USER 65532:65532
EXPOSE 8080 8081
ENTRYPOINT ["/usr/local/bin/node", "/app/dist/main.js"]
CMD ["--help"]

# The operator: it writes nothing. The root file system may be read-only.
FROM ${BASE_IMAGE} AS operator
COPY --from=build /usr/local/bin/node /usr/local/bin/node
COPY --from=build /image/operator /app
ENV NODE_ENV=production
USER 65532:65532
EXPOSE 8081
ENTRYPOINT ["/usr/local/bin/node", "/app/dist/main.js"]
CMD ["--help"]
