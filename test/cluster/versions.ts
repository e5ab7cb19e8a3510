/** The control plane that tests and demo run on. Both stand in controlplane/go.mod too; the test of assets compares them. */
export const KUBERNETES_VERSION = '1.36.3'
export const ETCD_VERSION = '3.6.15'
/** The oldest Go that compiles them (the `go` line of controlplane/go.mod). */
export const GO_VERSION = '1.26'
