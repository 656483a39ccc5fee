package inspect

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Other is a project that is not the host's service.
type Other struct {
	Name        string            `json:"name"`
	Deployed    *artifact.Release `json:"deployed,omitempty"`
	Since       *time.Time        `json:"since,omitempty"`
	Quarantined []ledger.Bad      `json:"quarantined,omitempty"`
}

// others lists them, by name.
func (h *Host) others() ([]Other, error) {
	files, err := walk.Glob(h.Layout.ProjectLedger("*"))
	if err != nil {
		return nil, err
	}
	var list []Other
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), filepath.Base(h.Layout.ProjectLedger("")))
		own := *h
		own.Alone = name
		book, err := own.ReadLedger()
		if err != nil {
			return list, err
		}
		o := Other{Name: name, Since: book.Since, Quarantined: book.Bad}
		if book.Good != nil {
			o.Deployed = &book.Good.Service
		}
		list = append(list, o)
	}
	return list, nil
}
