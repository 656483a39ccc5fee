package trust

import (
	"fmt"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// givenFile holds the first root that a person gave, or its digest, until a store is verified under it.
const givenFile = "given"

// Give keeps the first root that a person gave, as its content or its digest sha256:HEX, until Pin replaces it. A host
// whose store did not respond uses it in the next run. It is not trusted yet: OpenGiven verifies the store under it
// first. Giving another root replaces it.
func Give(dir string, given []byte) error {
	if err := isGiven(given); err != nil {
		return err
	}
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keeping the root that was given: %w", err)
	}
	return (seen{dir: dir}).keep(givenFile, given)
}

// Given returns what Give kept; nil if there is nothing, or if a root has been pinned since.
func Given(dir string) ([]byte, error) {
	if pinned, err := Pinned(dir); pinned || err != nil {
		return nil, err
	}
	data, _, err := walk.Read(filepath.Join(dir, givenFile))
	return data, err
}

// Introduced reports whether a host that keeps its trust in dir has a root to trust: a pinned one, or a given one that
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
