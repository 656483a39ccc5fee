package publish

import (
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// untaken refuses a version of which the store holds an artifact with other bytes that nothing signed names. A publisher
// that has seen the store before notices when it was restored from an older copy. One that has not learns it from what
// lies there alone: hosts may run these bytes, and take no others under the version.
func (p *Publisher) untaken(ctx context.Context, r artifact.Release) error {
	_, name := path.Split(trust.TargetPath(r.Project, r.Version, r.Format))
	for info, err := range p.Store.List(ctx, "deploy/"+r.Project+"/") {
		if errors.Is(err, store.ErrForbidden) {
			return nil
		}
		if err != nil {
			return err
		}
		digest, rest, _ := strings.Cut(path.Base(info.Key), ".")
		if rest == name && digest != r.Digest.Hex() {
			return mistake("publish under a new version; if that publish was cut short and no host can have it, give --force",
				"the store holds %s of %s, with other bytes than this artifact, and nothing signed names it: a publish that was cut short left it, or the store was restored from an older copy and hosts know the version",
				info.Key, info.Modified.UTC().Format(time.RFC3339))
		}
	}
	return nil
}
