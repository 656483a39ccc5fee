package trust

import (
	"context"
	"errors"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
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
	// Problem is why nothing of the project can be read; the other fields but Project are empty then. Err is the same.
	Problem string `json:"problem,omitempty"`
	Err     error  `json:"-"`
}

// List reads every project. Refresh comes first. A project that cannot be read has its error in its Listing, and hides no
// other one; the error of List is one that concerns them all.
func (c *Client) List(ctx context.Context) ([]Listing, error) {
	list := []Listing{}
	for _, name := range c.Projects() {
		l, err := c.listed(ctx, name)
		if err != nil && !OfOne(err) {
			return nil, err
		}
		if err != nil {
			l = empty(name)
			l.Problem, l.Err = err.Error(), err
		}
		list = append(list, l)
	}
	return list, nil
}

func (c *Client) listed(ctx context.Context, name string) (Listing, error) {
	role, err := c.Whole(ctx, name)
	if errors.Is(err, ErrNoProject) {
		return empty(name), nil
	}
	if err != nil {
		return Listing{}, err
	}
	return c.listing(name, role, c.set.Targets[name])
}

func empty(project string) Listing {
	return Listing{Project: project, Channels: map[string]Pointer{}, Releases: []artifact.Release{}, Yanked: map[string]Yank{}}
}

// OfOne reports whether an error of reading a project concerns that project alone: what the store has of it is lost, withheld
// or not to be believed. Any other error, such as that of a store which does not answer, concerns all of them.
func OfOne(err error) bool {
	var refused *Refused
	return errors.As(err, &refused) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrForbidden)
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
