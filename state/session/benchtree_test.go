package session_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/state/statetest/benchtree"
)

// tree is the root of a host with a tree of states.
type tree struct {
	root   string
	states int
}

// benchTree creates a root with the tree of states of the benchmarks, and with the package database, the accounts and
// the jobs of its host.
func benchTree(t testing.TB, users int) tree {
	return tree{benchtree.Host(t, users), benchtree.States(users)}
}
