package file

import (
	"context"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// retention implements file.retention_schedule: it removes backups from a directory except those that the rules
// retain by age.
type retention struct {
	Name     string     `sls:"name"`
	Retain   *value.Map `sls:"retain,required"`
	Format   string     `sls:"strptime_format"`
	Timezone any        `sls:"timezone"` // no effect: times are in the time zone of the host

	gone []string
}

func (r *retention) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	name, err := absolute(h, "name", r.Name)
	if err != nil {
		return module.Diff{}, err
	}
	if r.Name = name; !isDir(h, name) {
		return module.Diff{}, lackingDir(h, name)
	}
	dated, ignored, err := r.read(h)
	if err != nil {
		return module.Diff{}, err
	}
	kept := map[string]bool{}
	for rule, count := range r.Retain.All() {
		names, err := retained(dated, value.Str(rule), count)
		if err != nil {
			return module.Diff{}, err
		}
		for _, n := range names {
			kept[n] = true
		}
	}
	for _, d := range dated {
		if !kept[d.name] {
			r.gone = append(r.gone, d.name)
		}
	}
	if len(r.gone) == 0 {
		return module.Diff{Comment: "nothing to remove in " + name}, nil
	}
	ignored = append(ignored, ".", "..") // Salt lists them
	for _, list := range [][]string{r.gone, ignored} {
		slices.Sort(list)
		slices.Reverse(list)
	}
	retained := slices.Sorted(maps.Keys(kept))
	slices.Reverse(retained)
	changes := value.NewMap("retained", value.Strings(retained...), "deleted", value.Strings(r.gone...),
		"ignored", value.Strings(ignored...))
	return module.Diff{Changes: changes, Comment: fmt.Sprintf("would remove %s in %s", diag.Count(len(r.gone), "backup"),
		name)}, nil
}

// backup is a file and its time.
type backup struct {
	name string
	at   time.Time
}

func (r *retention) read(h *host.Host) (dated []backup, ignored []string, err error) {
	names, err := h.Files.ReadDir(r.Name)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		at, ok, err := r.timeOf(h, name)
		if err != nil {
			return nil, nil, err
		}
		if ok {
			dated = append(dated, backup{name, at})
		} else {
			ignored = append(ignored, name)
		}
	}
	structsort.Func(dated, func(a, b backup) int { return a.at.Compare(b.at) })
	return dated, ignored, nil
}

// timeOf returns the time in a name. Without a format it returns the modification time of the file.
func (r *retention) timeOf(h *host.Host, name string) (time.Time, bool, error) {
	if r.Format != "" {
		at, ok, err := parseTime(name, r.Format)
		return at, ok, err
	}
	info, err := h.Files.Lstat(path.Join(r.Name, name))
	return info.Modified.Local(), err == nil, err
}

// retained returns the backups that a rule keeps: the first of each of the newest years, months, weeks, days or
// hours, or the newest backups themselves.
func retained(dated []backup, rule string, count any) ([]string, error) {
	limit, err := keepCount(count)
	if err != nil {
		return nil, fmt.Errorf("retain %s: %w", rule, err)
	}
	var period func(t time.Time) string
	switch rule {
	case "first_of_year":
		period = func(t time.Time) string { return t.Format("2006") }
	case "first_of_month":
		period = func(t time.Time) string { return t.Format("200601") }
	case "first_of_day":
		period = func(t time.Time) string { return t.Format("20060102") }
	case "first_of_hour":
		period = func(t time.Time) string { return t.Format("2006010215") }
	case "most_recent":
		period = func(t time.Time) string { return t.Format("20060102150405.000000000") }
	case "first_of_week":
		// Salt does not count the current week, and uses the calendar year with the ISO week.
		limit++
		period = func(t time.Time) string { _, week := t.ISOWeek(); return fmt.Sprintf("%04d%02d", t.Year(), week) }
	default:
		return nil, diag.Argument.Hint(fmt.Errorf("retain has no rule %s", rule),
			"it can be most_recent, first_of_hour, first_of_day, first_of_week, first_of_month and first_of_year")
	}
	return firsts(dated, period, limit), nil
}

// firsts returns the first backup of each of the last limit periods that have any.
func firsts(dated []backup, period func(time.Time) string, limit int) []string {
	first := map[string]string{}
	for _, b := range dated {
		if p := period(b.at); first[p] == "" {
			first[p] = b.name
		}
	}
	periods := slices.Sorted(maps.Keys(first))
	var names []string
	for _, p := range periods[max(0, len(periods)-limit):] {
		names = append(names, first[p])
	}
	return names
}

func keepCount(v any) (int, error) {
	if v == "all" {
		return math.MaxInt - 1, nil
	}
	n, err := strconv.Atoi(value.Str(v))
	if err != nil || n < 0 {
		return 0, diag.Argument.Hint(fmt.Errorf("%s is not a number", value.Str(v)), "write a number or all")
	}
	return n, nil
}

func (r *retention) Apply(_ context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	for _, name := range r.gone {
		if err := h.Files.RemoveAll(path.Join(r.Name, name)); err != nil {
			return module.Report{}, err
		}
	}
	return module.Report{Changes: d.Changes,
		Comment: fmt.Sprintf("removed %s in %s", diag.Count(len(r.gone), "backup"), r.Name)}, nil
}
