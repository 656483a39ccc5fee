package trust

import (
	"encoding/json"

	"github.com/theupdateframework/go-tuf/v2/metadata"
)

// Decode reads a signed file without verifying who signed it. It is the only reader of such files: it refuses what
// two readers may read differently (see artifact.CheckJSON), and what makes the library panic.
func Decode[T metadata.Roles](data []byte) (role *metadata.Metadata[T], err error) {
	err = guardFile(data, func() error {
		role, err = (&metadata.Metadata[T]{}).FromBytes(data)
		return err
	})
	if err != nil {
		return nil, err
	}
	return role, nil
}

// DecodeInto is Decode for files, and parts of files, that the library has no type for: pages of versions,
// provenance, and what is looked at before it is verified.
func DecodeInto(data []byte, into any) error {
	return guardFile(data, func() error { return json.Unmarshal(data, into) })
}
