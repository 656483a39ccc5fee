package trust

import (
	"fmt"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// givenFile holds the given first root, or its digest, until a store was verified with it.
const givenFile = "given"

// Give keeps a first root, as its content or its digest sha256:HEX, until Pin replaces it. A host whose store did not
// respond uses it in the next run. It is not trusted yet: OpenGiven first verifies the store with it. Giving another
// root replaces it.
func Give(dir string, given []byte) error {
	if err := isGiven(given); err != nil {
		return err
	}
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keeping the root that was given: %w", err)
	}
	return (seen{dir: dir}).keep(givenFile, given)
}

// Given returns the root or the digest that Give has kept; nil if there is none, or if a root has been pinned since.
func Given(dir string) ([]byte, error) {
	if pinned, err := Pinned(dir); pinned || err != nil {
		return nil, err
	}
	data, _, err := walk.Read(filepath.Join(dir, givenFile))
	return data, err
}

// Introduced reports whether a host that keeps its trust in dir has a root: a pinned one, or a given one that has not
// verified a store yet.
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
