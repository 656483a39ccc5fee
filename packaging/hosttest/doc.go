// Package hosttest has the tests that install this project's own package on real systemd hosts. They have the build tag
// hosts; `make hosts` runs them.
package hosttest
