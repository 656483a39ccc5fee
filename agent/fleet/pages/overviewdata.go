package pages

import (
	"time"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// overview is the data of the first page, and of the page of a project.
type overview struct {
	common
	Heading      string
	Hosts        int
	Figures      []figure
	Bar          []part
	Rollouts     []rolloutShown
	Attention    []attention
	Rows         []row
	Channels     []History
	Releases     []release
	States       []fleet.State
	ChannelNames []string
	Static       []staticRow
	Data         tableData
}

type figure struct {
	What, Class, Query string
	N                  int
}

// part is a part of a bar. The width of a bar is 1000.
type part struct {
	Class, Title string
	X, W         int
}

type attention struct {
	fleet.Attention
	Class, Of, On string
	First         []string
	More          int
	Reasons       []string // with the words of hosts as such
}

type row struct {
	fleet.Row
	First  bool // of its channel
	Counts []int
}

// release is a release of a project.
type release struct {
	Version, Size, Digest, Withdrawn, Compared string
}

// History holds the moves of a channel.
type History struct {
	Ref   artifact.Ref
	Moves []Move // the newest first
}

// Move is a move of a channel or of its rollout.
type Move struct {
	At       time.Time
	What     string // such as promote, pause or abort
	Version  string
	Digest   string
	Who      string // the name that the person gave
	Points   bool   // the move points the channel at the version
	Verified bool   // the metadata that has the move is signed with keys that may sign the project now
	Compared string // URL of the page that compares the releases
}

// before returns the version that the channel named before a move that points it at another one; "" for other moves.
func (h History) before(i int) string {
	if !h.Moves[i].Points {
		return ""
	}
	for _, m := range h.Moves[i+1:] {
		if m.Points && m.Version != h.Moves[i].Version {
			return m.Version
		}
	}
	return ""
}

// staticRow is a host in the table that browsers without JavaScript show.
type staticRow struct {
	Host, Version, Channel, Class string
	State                         fleet.State
	Seen                          time.Time
}

// tableData is the data from which the script creates the table.
type tableData struct {
	Root     string        `json:"root"`
	States   []fleet.State `json:"states"`
	Channels []string      `json:"channels"`
	// Hosts have a name, the index of a channel, a version, the version that failed or is wanted, the index of a state,
	// flags (1 behind, 2 silent, 4 signed), and when they reported, in seconds.
	Hosts [][7]any `json:"hosts"`
}
