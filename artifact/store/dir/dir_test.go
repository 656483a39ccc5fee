package dir_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/dir"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return dir.New(t.TempDir()) }, nil)
}
