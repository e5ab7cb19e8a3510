# syntax=docker/dockerfile:1
# The base image is an argument, so that it can come from a mirror. It needs Node 24 and glibc (the BLS library is native).
ARG BASE_IMAGE=node:24-bookworm-slim

FROM ${BASE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
RUN node_modules/.bin/tsc -p tsconfig.build.json

FROM ${BASE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --no-audit --no-fund --ignore-scripts && npm cache clean --force

FROM ${BASE_IMAGE}
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /build/dist ./dist
COPY package.json LICENSE ./
COPY crds ./crds
# Nothing is written to the root file system: run it read-only. The service's embedded database wants a volume at /var/lib/staking-service.
USER 65532:65532
EXPOSE 8080 8081
ENTRYPOINT ["node", "/app/dist/main.js"]
CMD ["--help"]
