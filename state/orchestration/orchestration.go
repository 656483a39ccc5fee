// Package orchestration joins the functions of a session that creates AWS resources and does not change the host: the
// states of the families aws and test, and template functions that only read.
package orchestration

import (
	"context"
	"fmt"
	"io"
	"maps"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/function/config"
	"github.com/corpus-agent/corpus-agent/state/function/data"
	"github.com/corpus-agent/corpus-agent/state/function/defaults"
	"github.com/corpus-agent/corpus-agent/state/function/dnsutil"
	"github.com/corpus-agent/corpus-agent/state/function/environ"
	"github.com/corpus-agent/corpus-agent/state/function/file"
	"github.com/corpus-agent/corpus-agent/state/function/grains"
	"github.com/corpus-agent/corpus-agent/state/function/hashutil"
	"github.com/corpus-agent/corpus-agent/state/function/log"
	"github.com/corpus-agent/corpus-agent/state/function/match"
	"github.com/corpus-agent/corpus-agent/state/function/mine"
	"github.com/corpus-agent/corpus-agent/state/function/network"
	"github.com/corpus-agent/corpus-agent/state/function/pillar"
	"github.com/corpus-agent/corpus-agent/state/function/random"
	"github.com/corpus-agent/corpus-agent/state/function/saltutil"
	"github.com/corpus-agent/corpus-agent/state/function/slsutil"
	functest "github.com/corpus-agent/corpus-agent/state/function/test"
	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws"
	"github.com/corpus-agent/corpus-agent/state/module/test"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Tables provides the functions of such a session.
type Tables struct {
	// Cloud is the AWS account of the states. Its Setting is set to read the session's configuration and pillar.
	Cloud *aws.Cloud
}

// Reading is part of session.Tables.
func (t Tables) Reading(facts function.Facts) function.Table {
	f, all := &facts, function.Table{}
	all.Add(config.Functions(f), data.Functions(f), defaults.Functions(f), dnsutil.Functions(f), environ.Functions(f),
		file.Functions(f), grains.Functions(f), hashutil.Functions(f), log.Functions(f), match.Functions(f),
		mine.Functions(f, all), network.Functions(f), pillar.Functions(f), random.Functions(f), saltutil.Functions(f),
		slsutil.Functions(f), functest.Functions(f, all))
	maps.Copy(all, aws.Reading(t.Cloud))
	return all
}

// Acting is part of session.Tables.
func (t Tables) Acting(facts function.Facts) function.Table { return t.Reading(facts) }

// Filters is part of session.Tables.
func (Tables) Filters(f *function.Facts) map[string]jinja.Filter { return file.Filters(f) }

// States is part of session.Tables.
func (t Tables) States(s *session.Session) module.Registry {
	t.Cloud.Setting = func(name string) any { return setting(s, name) }
	t.Cloud.Secret = s.Redactor.Add
	t.Cloud.Source = func(ctx context.Context, url, env string) ([]byte, error) { return content(ctx, s, url, env) }
	all := module.Registry{"test": test.Functions(func(path string) (any, bool) { return s.InPillar(path, ":") })}
	maps.Copy(all, aws.Tables(t.Cloud))
	return all
}

// largestSource is the size of the largest file of a tree that is sent as an argument: certificates, keys and policies
// are a few KiB.
const largestSource = 1 << 20

// content returns a file of the tree.
func content(ctx context.Context, s *session.Session, url, env string) ([]byte, error) {
	source, err := s.Sources().Open(ctx, url, env)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	data, err := io.ReadAll(io.LimitReader(source, largestSource+1))
	if err == nil && len(data) > largestSource {
		err = fmt.Errorf("it is larger than %s", diag.Size(largestSource))
	}
	return data, err
}

// setting returns the value of config.option: an option of the minion's configuration, or a pillar value.
func setting(s *session.Session, name string) any {
	if v, ok := value.Lookup(s.Options, name, ":"); ok && v != nil {
		return v
	}
	if v, ok := s.InPillar(name, ":"); ok {
		return v
	}
	return nil
}
