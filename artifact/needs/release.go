package needs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/corpus-agent/corpus-agent/artifact"
)

// File is the file in which a release that was built by a recipe describes itself.
const File = ".corpus/release.json"

// Release is a release's description of itself. Packages and images of the same build contain the same
// file.
type Release struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Content string `json:"content"` // digest of all other content of the release
	Builder string `json:"builder,omitempty"`
	Base    string `json:"base,omitempty"` // the system that it was built in
	Needs   Needs  `json:"needs"`
}

// Read reads the description of a release. A release without one has no needs.
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
