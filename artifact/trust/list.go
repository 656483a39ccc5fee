package trust

import (
	"context"
	"errors"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
)

// Listing is what a store says of a project, verified.
type Listing struct {
	Project  string             `json:"project"`
	Serial   int64              `json:"serial"` // version of the project's signed metadata; 0 if never published
	Expires  time.Time          `json:"expires"`
	Channels map[string]Pointer `json:"channels"`
	Releases []artifact.Release `json:"releases"` // by version
	Yanked   map[string]Yank    `json:"yanked"`   // versions that were taken back
	// Statements are what is signed beside versions for others to read, by version.
	Statements map[string][]Statement `json:"statements,omitempty"`
	// Grounds are why channels may point where they do.
	Grounds map[string]Grounds `json:"grounds,omitempty"`
}

// List reads every project. Refresh comes first.
func (c *Client) List(ctx context.Context) ([]Listing, error) {
	list := []Listing{}
	for _, name := range c.Projects() {
		role, err := c.Whole(ctx, name)
		if errors.Is(err, ErrNoProject) {
			list = append(list, Listing{Project: name, Channels: map[string]Pointer{}, Releases: []artifact.Release{}, Yanked: map[string]Yank{}})
			continue
		}
		if err != nil {
			return nil, err
		}
		l, err := c.listing(name, role, c.set.Targets[name])
		if err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	return list, nil
}

// listing is what a project says; signed is the file with the signatures.
func (c *Client) listing(name string, role, signed *Role) (Listing, error) {
	channels, err := Channels(role)
	if err != nil {
		return Listing{}, malformed(name, err)
	}
	yanked, err := Yanks(role)
	if err != nil {
		return Listing{}, malformed(name, err)
	}
	l := Listing{
		Project: name, Serial: role.Signed.Version, Expires: role.Signed.Expires,
		Channels: channels, Releases: Releases(name, role), Yanked: yanked, Statements: map[string][]Statement{},
		Grounds: map[string]Grounds{},
	}
	for channel, pointer := range channels {
		l.Grounds[channel] = c.grounds(artifact.Ref{Project: name, Channel: channel}, pointer, signed)
	}
	for _, r := range l.Releases {
		if statements := c.Statements(r); len(statements) > 0 {
			l.Statements[r.Version] = statements
		}
	}
	return l, nil
}
