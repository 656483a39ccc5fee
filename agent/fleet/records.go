package fleet

import (
	"context"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
)

// records reads the records of hosts, and the keys of v if they do not explain every record.
func (q Query) records(ctx context.Context, v *View) (records hostrecord.Unchecked, err error) {
	read := func() error {
		v.Known, err = q.Keys(ctx, q.Store)
		v.Fresh = true
		return err
	}
	if v.Known == nil {
		if err := read(); err != nil {
			return nil, err
		}
	}
	if records, err = q.list(ctx, v.Known); err != nil || v.Fresh || !q.needsKeys(v.Known, records) {
		return records, err
	}
	before := v.Known.First()
	if err := read(); err != nil {
		return nil, err
	}
	for host, key := range v.Known.First() {
		if records.Omitted(host) && before[host] != key {
			return q.list(ctx, v.Known)
		}
	}
	return records, nil
}

func (q Query) list(ctx context.Context, known hostkey.Registry) (hostrecord.Unchecked, error) {
	records, err := hostrecord.List(ctx, q.Store, q.Project, known)
	if q.Host != "" {
		records = records.Only(q.Host)
	}
	return records, err
}

// needsKeys reports whether keys from an earlier look do not explain every record.
func (q Query) needsKeys(known hostkey.Registry, records hostrecord.Unchecked) bool {
	listed, ignored := records.Check(known)
	return len(ignored) > 0 || len(q.unrecorded(known, records)) > 0 ||
		slices.ContainsFunc(listed, func(r hostrecord.Listed) bool { return !r.Signed || r.Foreign })
}

// unrecorded returns the hosts that have registered a key and have no record in the store: they are in no row. A query
// for one project includes the hosts whose names contain it by the convention, SERVICE-INSTANCE-REGION-NODE. A query by
// properties that only records have includes none.
func (q Query) unrecorded(known hostkey.Registry, records hostrecord.Unchecked) (hosts []string) {
	if q.Host != "" || q.Channel != "" || q.BehindOnly || q.Silent {
		return nil
	}
	for host := range known {
		if !records.Has(host) && (q.Project == "" || serviceOf(host) == q.Project) {
			hosts = append(hosts, host)
		}
	}
	slices.Sort(hosts)
	return hosts
}

// serviceOf returns the service in the name of a host; "" for a name outside of the convention.
func serviceOf(host string) string {
	name, _, _ := strings.Cut(host, ".")
	parts := strings.Split(name, "-")
	return strings.Join(parts[:max(0, len(parts)-3)], "-")
}
