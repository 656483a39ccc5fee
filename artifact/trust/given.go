package trust

import (
	"fmt"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// givenFile holds the first root that a person gave, or its digest, until a store is verified under it.
const givenFile = "given"

// Give keeps what a person gave as the first root, which is its content or its digest sha256:HEX, until Pin replaces it.
// A host whose store did not answer goes on with it at the next run. It is not trusted yet: OpenGiven verifies the store
// under it as it would under one that is given at that moment. Giving another one replaces it.
func Give(dir string, given []byte) error {
	if err := isGiven(given); err != nil {
		return err
	}
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keeping the root that was given: %w", err)
	}
	return (seen{dir: dir}).keep(givenFile, given)
}

// Given is what Give kept; nil where there is nothing, or where a root is pinned since.
func Given(dir string) ([]byte, error) {
	if pinned, err := Pinned(dir); pinned || err != nil {
		return nil, err
	}
	data, _, err := walk.Read(filepath.Join(dir, givenFile))
	return data, err
}

// Introduced reports whether a host that keeps its trust in dir knows whom to trust: a root is pinned, or was given and
// waits for a store that it verifies.
func Introduced(dir string) (bool, error) {
	if pinned, err := Pinned(dir); pinned || err != nil {
		return pinned, err
	}
	return walk.Exists(filepath.Join(dir, givenFile))
}

func isGiven(data []byte) error {
	if isPin(data) == nil {
		return nil
	}
	return isRoot(data)
}
