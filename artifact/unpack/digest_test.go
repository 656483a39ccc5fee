package unpack_test

import (
	"crypto/sha256"

	"github.com/corpus-agent/corpus-agent/artifact"
)

func digest(data []byte) artifact.Digest { return artifact.NewDigest(sha256.Sum256(data)) }
