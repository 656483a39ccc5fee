package agent_test

import (
	"crypto/sha256"

	"github.com/corpus-agent/corpus-agent/artifact"
)

func trustDigest(root []byte) string { return string(artifact.NewDigest(sha256.Sum256(root))) }
