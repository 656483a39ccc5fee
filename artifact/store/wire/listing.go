package wire

import (
	"iter"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// InOrder ends a listing after an error, and when it does not advance, since it could then continue forever.
func (c *Call) InOrder(listing iter.Seq2[store.Info, error]) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		last := ""
		for info, err := range listing {
			if err == nil && info.Key <= last {
				yield(store.Info{}, c.Malformed("it listed %.80q after %.80q", info.Key, last))
				return
			}
			last = info.Key
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}
