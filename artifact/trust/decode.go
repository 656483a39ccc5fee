package trust

import "github.com/theupdateframework/go-tuf/v2/metadata"

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
