package needs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/corpus-agent/corpus-agent/artifact"
)

// File is where a release that was built by a recipe says what it is.
const File = ".corpus/release.json"

// Release is what a release says of itself. Packages and images of the same build hold the same
// file.
type Release struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Content string `json:"content"` // digest of everything else in the release
	Builder string `json:"builder,omitempty"`
	Base    string `json:"base,omitempty"` // system that it was built in
	Needs   Needs  `json:"needs"`
}

// Read reads what a release says of itself. One that says nothing needs nothing.
func Read(release fs.FS) (Release, error) {
	data, err := fs.ReadFile(release, File)
	if errors.Is(err, fs.ErrNotExist) {
		return Release{}, nil
	}
	if err != nil {
		return Release{}, err
	}
	if err := artifact.CheckJSON(data); err != nil {
		return Release{}, fmt.Errorf("%s: %w", File, err)
	}
	var r Release
	if err := json.Unmarshal(data, &r); err != nil {
		return Release{}, fmt.Errorf("%s: %w", File, err)
	}
	return r, nil
}
