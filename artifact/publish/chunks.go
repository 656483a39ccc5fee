package publish

import (
	"context"
	"os"

	"github.com/corpus-agent/corpus-agent/artifact/manifest"
)

func (p *Publisher) addChunks(context.Context, *described, *os.Root, *manifest.Manifest) error {
	return nil
}
