package hostrecord

import (
	"cmp"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Unchecked holds the records in a store, by host. They must not be used before Check.
type Unchecked map[string]*hostObjects

// hostObjects are the objects below the name of a host.
type hostObjects struct {
	records []candidate
	other   int // number of objects that are not records, and of records that were not signed by the host and are omitted
	omitted bool
}

// hostOf returns the host in the key of an object; "" if it is below the name of none.
func hostOf(key string) string {
	parts := strings.SplitN(key, "/", 4)
	if len(parts) < 4 || cmp.Or(artifact.CheckProject(parts[1]), artifact.CheckHost(parts[2])) != nil {
		return ""
	}
	return parts[2]
}

func (o *hostObjects) add(info store.Info, keys []hostkey.Registered) {
	c, ok := candidateOf(info)
	if !ok {
		o.other++
		return
	}
	if o.records = append(o.records, c); len(o.records) > 2*mostTried {
		o.truncate(keys)
	}
}

// truncate limits the number of records that are kept of a host. Those that its first key did not sign are omitted, and
// then the earliest ones.
func (o *hostObjects) truncate(keys []hostkey.Registered) {
	if before := len(o.records); len(keys) > 0 {
		o.records = slices.DeleteFunc(o.records, func(c candidate) bool { return !signedByOne(keys[:1], c) })
		o.other += before - len(o.records)
		o.omitted = o.omitted || len(o.records) < before
	}
	inOrder(o.records)
	o.records = o.records[:min(len(o.records), mostTried)]
}

// Has reports whether there is a record of a host, valid or not.
func (u Unchecked) Has(host string) bool { return u[host] != nil && len(u[host].records) > 0 }

// Any reports whether there is an object below the name of a host, a record or not.
func (u Unchecked) Any(host string) bool { return u[host] != nil }

// Only returns the records of one host.
func (u Unchecked) Only(host string) Unchecked {
	if u[host] == nil {
		return Unchecked{}
	}
	return Unchecked{host: u[host]}
}

// Omitted reports whether records of a host were omitted since the key of the host in known did not sign them.
func (u Unchecked) Omitted(host string) bool { return u[host] != nil && u[host].omitted }

// mostOthers is the number of objects below the name of a host that are not records of it and need no person. A host
// that may not delete leaves records that its earlier key signed.
const mostOthers = 100

// Flooded returns the number of objects that are not records, of each host that has very many.
func (u Unchecked) Flooded() map[string]int {
	found := map[string]int{}
	for host, o := range u {
		if o.other > mostOthers {
			found[host] = o.other
		}
	}
	return found
}
