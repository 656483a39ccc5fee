package session_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/state/statetest/benchtree"
)

// tree is a host with a tree of states for it.
type tree struct {
	root   string
	states int
}

// benchTree writes the benchmarks' tree of states below a root, and the host that it is about: its
// package database, its accounts and its jobs.
func benchTree(t testing.TB, users int) tree {
	return tree{benchtree.Host(t, users), benchtree.States(users)}
}
