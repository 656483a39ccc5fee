package trust

import (
	"context"
	"errors"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Listing is the verified content of a project in a store.
type Listing struct {
	Project  string             `json:"project"`
	Serial   int64              `json:"serial"` // version of the project's signed metadata; 0 if never published
	Expires  time.Time          `json:"expires"`
	Channels map[string]Pointer `json:"channels"`
	Releases []artifact.Release `json:"releases"` // by version
	Yanked   map[string]Yank    `json:"yanked"`   // withdrawn versions
	// Statements are the files signed beside versions for people and other programs, by version.
	Statements map[string][]Statement `json:"statements,omitempty"`
	// Grounds are the reasons why channels may point where they do.
	Grounds map[string]Grounds `json:"grounds,omitempty"`
	// Problem is the reason why the project cannot be read; all other fields but Project are empty then. Err is the
	// same error.
	Problem string `json:"problem,omitempty"`
	Err     error  `json:"-"`
}

// List reads every project. The caller must call Refresh first. A project that cannot be read has its error in its
// Listing and does not affect the others; List itself fails only for errors that concern all projects.
func (c *Client) List(ctx context.Context) ([]Listing, error) {
	list := []Listing{}
	for _, name := range c.Projects() {
		l, err := c.ListOne(ctx, name)
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

// ListOne reads one project, like List; a project without a release has an empty Listing.
func (c *Client) ListOne(ctx context.Context, name string) (Listing, error) {
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
	return Listing{Project: project, Channels: map[string]Pointer{}, Releases: []artifact.Release{},
		Yanked: map[string]Yank{}}
}

// OfOne reports whether an error of reading a project concerns that project only: its files are lost, forbidden or
// refused. Any other error, such as that of a store that does not respond, concerns all projects.
func OfOne(err error) bool {
	var refused *Refused
	return errors.As(err, &refused) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrForbidden)
}

// listing lists a project's role; signed is its file with the signatures.
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
