package trust

import (
	"encoding/json"

	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// Decode reads a signed file without verifying who signed it. It is the only reader of such files: it refuses what
// two readers may read differently (see artifact.CheckJSON), and what makes a verifier panic.
func Decode[T tuf.Roles](data []byte) (role *tuf.Metadata[T], err error) {
	err = guardFile(data, func() error {
		role, err = tuf.Decode[T](data)
		return err
	})
	if err != nil {
		return nil, err
	}
	return role, nil
}

// DecodeInto is Decode for files, and parts of files, that artifact/tuf has no type for: pages of versions,
// provenance, and what is looked at before it is verified.
func DecodeInto(data []byte, into any) error {
	return guardFile(data, func() error { return json.Unmarshal(data, into) })
}
