// Package trust decides what a host may believe of what a store says.
//
// It is a client of The Update Framework (https://theupdateframework.github.io/specification/),
// with artifact/tuf doing the checks of signatures, versions and expiry. The parts, each a file under
// metadata/ in the store:
//
//	root       names the keys of all other roles; replaced only by a threshold of root keys
//	targets    delegates each project, deploy/NAME/*, to that project's key
//	NAME       the project: its artifacts (length, digest) and its channels
//	snapshot   the version of every file above, so that none is mixed with another time's
//	timestamp  the version of the snapshot; short-lived, so that a store cannot stand still unseen
//
// A host gets the first root once, from a person. From then on it follows only what that root leads to,
// keeps what it has seen, and accepts nothing older. A check that finds nothing new costs two small
// requests: the next root, which is absent, and the timestamp.
//
// The product of the room is a Verified: an artifact whose every byte is the one the project's key
// signed. Only this package can make one, and artifact/unpack takes nothing else.
package trust
