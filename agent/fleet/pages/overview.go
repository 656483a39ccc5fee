package pages

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// mostStatic bounds the hosts in the table for browsers without JavaScript.
const mostStatic = 200

// overviews writes the pages of the projects.
func (w *writer) overviews() {
	projects := map[string]bool{}
	for _, l := range w.site.Listings {
		projects[l.Project] = true
	}
	for _, r := range w.site.View.Rows {
		projects[r.Project] = true
	}
	for project := range projects {
		w.group.Go(func() error {
			return w.page(w.ctx, "project/"+project+"/index.html", "overview", w.overview(project))
		})
	}
}

// overview returns the data of the page of a project, or of the whole fleet for "".
func (w *writer) overview(project string) overview {
	v := w.site.View
	o := overview{common: w.common("Fleet", ""), Heading: "Fleet", States: fleet.States()}
	if project != "" {
		o.common, o.Heading = w.common(project+" - Fleet", "../../", step{Text: project}), project
		o.Channels, o.Releases = w.histories(project), w.releases(project)
	}
	hosts := slices.DeleteFunc(urgent(v), func(h fleet.Host) bool {
		return project != "" && project != artifact.Base && h.Project != project
	})
	o.Hosts = len(hosts)
	o.count(hosts)
	for _, a := range v.Attention {
		if project == "" || a.Project == project {
			o.Attention = append(o.Attention, newAttention(a))
		}
	}
	before := artifact.Ref{}
	for _, r := range v.Rows {
		if project == "" || r.Project == project {
			o.Rows = append(o.Rows, row{r, r.Ref != before, []int{r.Hosts, r.Healthy, r.Failed, r.RolledBack, r.Quarantined,
				r.Held, r.Drifted, r.Behind, r.Silent}})
			before = r.Ref
		}
	}
	o.Rollouts = w.rollouts(project)
	o.table(hosts)
	return o
}

// count counts hosts by state.
func (o *overview) count(hosts []fleet.Host) {
	counts, behind, silent := map[fleet.State]int{}, 0, 0
	for _, h := range hosts {
		counts[h.State]++
		if h.Behind {
			behind++
		}
		if h.Silent {
			silent++
		}
	}
	x, seen := 0, 0
	for _, state := range fleet.States() {
		n := counts[state]
		if n > 0 || state == fleet.Healthy {
			o.Figures = append(o.Figures, figure{string(state), class(string(state)), url.QueryEscape(string(state)), n})
		}
		if n > 0 {
			seen += n
			to := 1000 * seen / len(hosts)
			o.Bar = append(o.Bar, part{Class: class(string(state)), Title: fmt.Sprintf("%s: %s", state, grouped(n)), X: x,
				W: to - x})
			x = to
		}
	}
	o.Figures = append(o.Figures, figure{"behind", "other", "behind", behind},
		figure{"silent", "silent", "silent", silent})
}

// mostNamed is the maximum number of hosts that an entry of the attention list names.
const mostNamed = 6

func newAttention(a fleet.Attention) attention {
	first := a.Hosts[:min(len(a.Hosts), mostNamed)]
	out := attention{a, class(a.What), "", hostCount(len(a.Hosts)), first, len(a.Hosts) - len(first), nil}
	if a.Version != "" {
		out.Of = a.Project + " " + a.Version
	}
	for _, line := range a.Lines() {
		out.Reasons = append(out.Reasons, shown(line))
	}
	out.Hint = shown(a.Advice())
	return out
}

// table fills the table of hosts.
func (o *overview) table(hosts []fleet.Host) {
	index := map[string]int{}
	for _, h := range hosts {
		index[channelOf(h)] = 0
	}
	o.ChannelNames = slices.Sorted(maps.Keys(index))
	for i, name := range o.ChannelNames {
		index[name] = i
	}
	o.Data = tableData{Root: o.Root, States: o.States, Channels: o.ChannelNames, Hosts: make([][7]any, 0, len(hosts))}
	if o.Data.Channels == nil {
		o.Data.Channels = []string{}
	}
	for i, h := range hosts {
		wanted := ""
		if h.State != fleet.Healthy {
			wanted = version(h.Wanted)
		}
		o.Data.Hosts = append(o.Data.Hosts, [7]any{h.Host, index[channelOf(h)], version(h.Service), wanted,
			slices.Index(o.States, h.State), bit(h.Behind, 1) + bit(h.Silent, 2) + bit(h.Signed, 4), h.Seen.Unix()})
		if i < mostStatic {
			o.Static = append(o.Static, staticRow{h.Host, version(h.Service), channelOf(h), class(string(h.State)), h.State,
				h.Seen})
		}
	}
}

func bit(is bool, value int) int {
	if is {
		return value
	}
	return 0
}

func channelOf(h fleet.Host) string {
	if h.Service == nil {
		return h.Project
	}
	return h.Project + "/" + h.Service.Channel
}

func hostCount(n int) string {
	if n == 1 {
		return "1 host"
	}
	return grouped(n) + " hosts"
}

// mostMoves bounds the moves of a channel on a project's page.
const mostMoves = 60

func (w *writer) histories(project string) (out []History) {
	for _, h := range w.site.Histories[project] {
		h.Moves = slices.Clone(h.Moves[:min(len(h.Moves), mostMoves)])
		for i := range h.Moves {
			m := &h.Moves[i]
			m.What, m.Who = shown(m.What), shown(m.Who)
			if before := h.before(i); before != "" {
				h.Moves[i].Compared = w.compares(project, before, h.Moves[i].Version)
			}
		}
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b History) int { return cmp.Compare(a.Ref.Channel, b.Ref.Channel) })
	return out
}

// mostReleases bounds the releases on a project's page.
const mostReleases = 50

func (w *writer) releases(project string) (out []release) {
	for _, l := range w.site.Listings {
		if l.Project != project {
			continue
		}
		all := slices.Clone(l.Releases)
		slices.SortFunc(all, func(a, b artifact.Release) int { return artifact.CompareVersions(b.Version, a.Version) })
		for i, r := range all[:min(len(all), mostReleases)] {
			shows := release{Version: r.Version, Size: diag.Size(r.Length), Digest: r.Digest.Short()}
			if yank, ok := l.Yanked[r.Version]; ok {
				shows.Withdrawn = strings.TrimSpace("withdrawn " + stamp(yank.At) + " " + shown(yank.Reason))
			}
			if i+1 < len(all) {
				shows.Compared = w.compares(project, all[i+1].Version, r.Version)
			}
			out = append(out, shows)
		}
	}
	return out
}
