// Package trust verifies the data in a store before a host uses it.
//
// It is a client of The Update Framework (https://theupdateframework.github.io/specification/). Package artifact/tuf
// checks signatures, versions and expiry. These are the roles, each a file under metadata/ in the store:
//
//	root       names the keys of all other roles; replaced only by a threshold of root keys
//	targets    delegates each project, deploy/NAME/*, to that project's key
//	NAME       the project: its artifacts (length, digest) and its channels
//	snapshot   the version of every file above, so that files of different times cannot be mixed
//	timestamp  the version of the snapshot; short-lived, so that hosts notice a store that is no longer updated
//
// A person gives a host the first root, once. From then on the host accepts only roots that are signed by the one
// before, keeps the metadata that it has seen, and refuses anything older. A check that finds nothing new costs one
// small request, for the timestamp unless it is the version that the host has; if a store reports no versions, it costs
// a second one, for the next root. The host accepts nothing new before it has looked for a newer root.
//
// The result is a Verified: an artifact whose every byte is covered by a signature of the project's key. Only this
// package can make one, and artifact/unpack accepts nothing else.
package trust
