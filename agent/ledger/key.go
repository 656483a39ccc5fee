package ledger

import "strings"

// Key identifies a pair in the journal: by the bytes of its releases, and by its service, since two services may have
// the same bytes. Keys are compared by Same: == does not compile.
type Key struct {
	_ [0]func()

	Bytes   string // digests of the releases; "" for no pair
	Service string // project of the service, or of base for base alone; "" in journals of older agents
}

// Same reports whether two keys identify the same pair. A key of an older agent has no service, and matches every
// service with these bytes.
func (k Key) Same(other Key) bool {
	return k.Bytes == other.Bytes && (k.Service == other.Service || k.Service == "" || other.Service == "")
}

// Key returns the key of the pair in the journal.
func (p Pair) Key() Key {
	d := p.digests()
	return Key{Bytes: strings.TrimSpace(string(d[0]) + " " + string(d[1])), Service: p.Own().Project}
}
