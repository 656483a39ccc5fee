package fleet

import (
	"context"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// records reads the records of hosts, and the keys of v if they do not explain every record. It returns the records
// that are valid as well, and sets those of v that are not.
func (q Query) records(ctx context.Context, v *View) (records hostrecord.Unchecked, listed []hostrecord.Listed,
	err error) {
	if v.Known == nil {
		if err := q.readKeys(ctx, v); err != nil {
			return nil, nil, err
		}
	}
	if records, err = q.list(ctx, v.Known); err != nil {
		return nil, nil, err
	}
	listed, v.Ignored = records.Check(v.Known)
	if v.Fresh || !q.needsKeys(v, records, listed) {
		return records, listed, nil
	}
	before := v.Known.First()
	if err := q.readKeys(ctx, v); err != nil {
		return nil, nil, err
	}
	for host, key := range v.Known.First() {
		if records.Omitted(host) && before[host] != key {
			if records, err = q.list(ctx, v.Known); err != nil {
				return nil, nil, err
			}
			break
		}
	}
	listed, v.Ignored = records.Check(v.Known)
	return records, listed, nil
}

func (q Query) readKeys(ctx context.Context, v *View) (err error) {
	v.Known, err = q.Keys(ctx, q.Store)
	v.Fresh = true
	return err
}

func (q Query) list(ctx context.Context, known hostkey.Registry) (hostrecord.Unchecked, error) {
	records, err := hostrecord.List(ctx, q.Store, q.Project, known)
	if q.Host != "" {
		records = records.Only(q.Host)
	}
	return records, err
}

// needsKeys reports whether keys from an earlier look do not explain every record.
func (q Query) needsKeys(v *View, records hostrecord.Unchecked, listed []hostrecord.Listed) bool {
	return len(v.Ignored) > 0 || len(q.unrecorded(v.Known, records)) > 0 ||
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
		if !records.Any(host) && (q.Project == "" || serviceOf(host) == q.Project) {
			hosts = append(hosts, host)
		}
	}
	slices.Sort(hosts)
	return hosts
}

// mostRequests bounds the requests by which a view finds out which hosts without a record were renamed. A host whose
// present name has a record takes none.
const mostRequests = 200

// findRenamed sets the present names of the hosts without a record that were renamed.
func (v *View) findRenamed(ctx context.Context, s store.Store, listed []hostrecord.Listed) error {
	signers := map[string]hostkey.Public{} // the keys that signed the records of hosts
	for _, r := range listed {
		if r.Signed {
			signers[r.Host] = v.Known[r.Host][0].Key
		}
	}
	v.renaming = hostkey.Renaming{Store: s, Keys: v.Known, Requests: mostRequests,
		Reported: func(name string, key hostkey.Public) bool { return signers[name] == key }}
	v.renamed = map[string]string{}
	for _, host := range v.unrecorded {
		now, err := v.renaming.Now(ctx, host, v.Known[host][0].Key)
		if err != nil {
			return err
		}
		v.renamed[host] = now
	}
	return nil
}

// Renamed returns the name that a host with a key has now, if that key signed a record or the registration of that
// name; "" if it has no other name, or if the view has made so many requests for other hosts that it does not know.
func (v *View) Renamed(ctx context.Context, host string, key hostkey.Public) (string, error) {
	if now, known := v.renamed[host]; known && v.Known[host][0].Key == key {
		return now, nil
	}
	return v.renaming.Now(ctx, host, key)
}

// serviceOf returns the service in the name of a host; "" for a name outside of the convention.
func serviceOf(host string) string {
	name, _, _ := strings.Cut(host, ".")
	parts := strings.Split(name, "-")
	return strings.Join(parts[:max(0, len(parts)-3)], "-")
}
