package packages

import (
	"context"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// listOfYum returns the available packages from the output of yum list, since yum has no repoquery of its own:
//
//	Available Packages
//	foo.noarch                 1:1.0-1                 test
//
// yum breaks a line if a column is too narrow.
func (d *dnf) listOfYum(ctx context.Context, what string, options, names []string) ([]host.Package, error) {
	argv := slices.Concat(d.fromCache("-q"), options, []string{"list", "available", "--showduplicates"}, names)
	out, err := d.insist(ctx, true, dnfLocked, argv...)
	if err != nil {
		return nil, err
	}
	if out.Code != 0 && !strings.Contains(out.Stderr, "No matching Packages to list") {
		return nil, orPassing(ctx, dnfLocked, out, whyFailed(what, out, dnfClues()))
	}
	return parseYumList(out.Stdout)
}

func parseYumList(text string) ([]host.Package, error) {
	var found []host.Package
	var row []string
	for line := range strings.SplitSeq(text, "\n") {
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasSuffix(line, " Packages") && len(row) == 0 {
			continue
		}
		if row = append(row, f...); len(row) < 3 {
			continue
		}
		name, arch, ok := cutLast(row[0], ".")
		if !ok || len(row) > 3 {
			return nil, notUnderstood("yum", line)
		}
		found = append(found, host.Package{Name: name, Version: plainEVR(row[1]), Arch: arch})
		row = nil
	}
	if len(row) > 0 {
		return nil, notUnderstood("yum", strings.Join(row, " "))
	}
	return found, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func (d *dnf) offersOfYum(ctx context.Context, names, options []string) (map[string]host.Offer, error) {
	found, err := d.listOfYum(ctx, "querying the repositories", options, names)
	offers := map[string]host.Offer{}
	d.collect(offers, names, found)
	return offers, err
}

func (d *dnf) namesOfYum(ctx context.Context) ([]string, error) {
	found, err := d.listOfYum(ctx, "listing the packages of the repositories", nil, nil)
	names := make([]string, len(found))
	for i, p := range found {
		names[i] = p.Name
	}
	slices.Sort(names)
	return slices.Compact(names), err
}
