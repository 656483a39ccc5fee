// Package layout defines the paths of the agent's files.
//
// All paths are below a root, "/" on a host or the directory of --root, and every link is relative, so that a tree
// resolves at any mount point:
//
//	/srv/projects/NAME/releases/   immutable, verified
//	/srv/projects/NAME/next        always there; equals current between runs
//	/srv/projects/NAME/current     what runs
//	/srv/projects/NAME/previous    what ran before
//	/srv/projects/NAME/project     -> current
//	/srv/projects/NAME/data/       persistent; deploys never touch it
//	/srv/projects/NAME/pillar/     this host's own pillar
//	/srv/projects/NAME/archives/   failed releases, apart from good ones
//	/srv/base, /srv/service        -> projects/...
//	/var/lib/corpus/               trust, ledger, reports, journal
//	/etc/corpus/                   configuration
package layout

import (
	"path/filepath"
	"strings"
)

// Layout is the tree below a root directory.
type Layout struct{ Root string }

// DamagedMark is in the name of whatever was set aside because it was not what it had to be. Nothing
// of the agent reads such a name, and a person decides what becomes of it.
const DamagedMark = ".damaged-"

// At makes the layout below root; "" means "/".
func At(root string) Layout {
	if root == "" {
		root = "/"
	}
	return Layout{Root: root}
}

// Relocated reports whether the tree is not the running system's own.
func (l Layout) Relocated() bool { return filepath.Clean(l.Root) != "/" }

// Path is a path of the host as a path on this machine.
func (l Layout) Path(p string) string { return filepath.Join(l.Root, p) }

// Inside is the reverse of Path: what programs on the host call the file.
func (l Layout) Inside(p string) string {
	rel, err := filepath.Rel(l.Root, p)
	if err != nil || strings.HasPrefix(rel, "..") {
		return p
	}
	return filepath.Join("/", rel)
}

// Configuration is the directory of what operators write down for this host.
func (l Layout) Configuration() string { return l.Path("/etc/corpus") }

// Config is the configuration file.
func (l Layout) Config() string { return filepath.Join(l.Configuration(), "agent.yaml") }

// ConfigurationParts are the files and directories of the configuration that the agent, or the service manager for it,
// reads or runs.
func (l Layout) ConfigurationParts() (all []string) {
	for _, name := range []string{"agent.yaml", "environment", "grains.yaml", "grains.d", "age.key", "gpgkeys"} {
		all = append(all, filepath.Join(l.Configuration(), name))
	}
	return all
}

// StaticGrains is the file of grains that an operator wrote down.
func (l Layout) StaticGrains() string { return filepath.Join(l.Configuration(), "grains.yaml") }

// State is the directory of the agent's own data.
func (l Layout) State() string { return l.Path("/var/lib/corpus") }

// Trust is where artifact/trust keeps the metadata that it has verified. A host with root.json in it is bootstrapped.
func (l Layout) Trust() string { return filepath.Join(l.State(), "trust") }

// Images is where a node keeps the images of its guests.
func (l Layout) Images() string { return l.Path("/var/lib/corpus-images") }

// Ledger is the file of the ledger, which names the deployed releases.
func (l Layout) Ledger() string { return filepath.Join(l.State(), "ledger.json") }

// Reports is the directory of the runs' reports.
func (l Layout) Reports() string { return filepath.Join(l.State(), "reports") }

// Journal is the directory of what converging replaced.
func (l Layout) Journal() string { return filepath.Join(l.State(), "journal", "host") }

// ProjectJournal is the same of a project that is not the host's service.
func (l Layout) ProjectJournal(project string) string {
	return filepath.Join(l.State(), "journal", "projects", project)
}

// Registry is the file of the registry entry of a project.
func (l Layout) Registry(project string) string {
	return filepath.Join(l.State(), "projects", project+".json")
}

// ProjectLedger is the ledger of a project that is not the host's service.
func (l Layout) ProjectLedger(project string) string {
	return filepath.Join(l.State(), "projects", project+".ledger.json")
}

// Copies of essential files are beside the releases, so that a loss of the state directory does not affect them.

// LedgerCopy is the copy of the ledger.
func (l Layout) LedgerCopy() string { return filepath.Join(l.Projects(), ".ledger.json") }

// ProjectLedgerCopy is the copy of the ledger of a project that is not the host's service.
func (l Layout) ProjectLedgerCopy(project string) string {
	return filepath.Join(l.Projects(), "."+project+".ledger.json")
}

// RegistryCopy is the copy of a project's entry in the registry.
func (l Layout) RegistryCopy(project string) string {
	return filepath.Join(l.Projects(), "."+project+".project.json")
}

// ConfigCopy is the configuration file that was valid last.
func (l Layout) ConfigCopy() string { return filepath.Join(l.Projects(), ".agent.yaml") }

// Incoming is the directory of artifacts that are being fetched.
func (l Layout) Incoming() string { return filepath.Join(l.State(), "incoming") }

// Part is the file of an artifact's blocks that have arrived, by its project and the artifact's digest: two projects
// may have an artifact of the same bytes, and both are fetched at the same time.
func (l Layout) Part(project, digest string) string {
	return filepath.Join(l.Incoming(), digest+"."+project+".part")
}

// Chunks is the file of chunks that have arrived for a release, by its project and its artifact's digest.
func (l Layout) Chunks(project, digest string) string {
	return filepath.Join(l.Incoming(), digest+"."+project+".chunks")
}

// Trees is the directory of the manifests of a project's releases.
func (l Layout) Trees(project string) string { return filepath.Join(l.State(), "trees", project) }

// Tree is the manifest of a release.
func (l Layout) Tree(project, dir string) string { return filepath.Join(l.Trees(project), dir) }

// Lock is the file that a run holds.
func (l Layout) Lock() string { return filepath.Join(l.State(), "lock") }

// Refusals is the file about runs that the lock refused.
func (l Layout) Refusals() string { return filepath.Join(l.State(), "refused.json") }

// HostKey is the private key with which the host signs its reports.
func (l Layout) HostKey() string { return filepath.Join(l.State(), "host.key") }

// HostRegistered is the file about the newest registration of that key in a store.
func (l Layout) HostRegistered() string { return filepath.Join(l.State(), "registered.json") }

// HostRecord is the file about the records that a store may have of this host.
func (l Layout) HostRecord() string { return filepath.Join(l.State(), "record.json") }

// Roster is the file that keeps the roster of the rollout of a project's channel.
func (l Layout) Roster(project string) string {
	return filepath.Join(l.State(), "rosters", project+".json")
}

// HoldRequest is the file of a hold, or of its end, that is not in the ledger yet.
func (l Layout) HoldRequest() string { return filepath.Join(l.State(), "hold.json") }

// HoldLock is the lock of those who write or remove that file.
func (l Layout) HoldLock() string { return filepath.Join(l.State(), "hold.lock") }

// Temporary is the list of directories in which a run that is under way makes temporary files.
func (l Layout) Temporary() string { return filepath.Join(l.State(), "temporary") }

// StateFiles are the files of the state directory that are in none of its directories. A run sets aside what else
// stands in their places.
func (l Layout) StateFiles() []string {
	return []string{l.Ledger(), l.Lock(), l.Refusals(), l.HostKey(), l.HostRegistered(), l.HostRecord(), l.HoldRequest(),
		l.HoldLock(), l.Temporary()}
}

// BaseLink points at base's project.
func (l Layout) BaseLink() string { return l.Path("/srv/base") }

// ServiceLink points at this host's service.
func (l Layout) ServiceLink() string { return l.Path("/srv/service") }

// Projects is the directory of all projects.
func (l Layout) Projects() string { return l.Path("/srv/projects") }

// Project is the part of the tree that belongs to a project.
func (l Layout) Project(name string) Project {
	return Project{Name: name, Dir: filepath.Join(l.Projects(), name)}
}

// Project is the part of the tree that belongs to a project.
type Project struct {
	Name string
	Dir  string
}

// Releases is the directory of unpacked releases.
func (p Project) Releases() string { return filepath.Join(p.Dir, "releases") }

// Release is the directory of one release.
func (p Project) Release(dir string) string { return filepath.Join(p.Releases(), dir) }

// Staged is a release that is complete and not yet safe from a power failure.
func (p Project) Staged(dir string) string { return filepath.Join(p.Releases(), ".staged-"+dir) }

// ReleaseLink is a release as a link in the project's directory names it.
func (p Project) ReleaseLink(dir string) string { return filepath.Join("releases", dir) }

// Archives is the directory of failed and archived releases.
func (p Project) Archives() string { return filepath.Join(p.Dir, "archives") }

// Git is one of the project's repositories: project or pillar.
func (p Project) Git(name string) string { return filepath.Join(p.Dir, "git", name+".git") }

// The names of what an archive holds.
const (
	ArchivedTree = "project"        // the tree of a project before a deploy
	FailedTree   = "project.failed" // a release that was rolled back
)

// Data is the directory that no deploy touches.
func (p Project) Data() string { return filepath.Join(p.Dir, "data") }

// Pillar is this host's own pillar of the project.
func (p Project) Pillar() string { return filepath.Join(p.Dir, "pillar") }

// Who is the file with the identity of the host, in addition to the ledger and its copy.
func (p Project) Who() string { return filepath.Join(p.Dir, ".host.json") }

// LinkTarget is what /srv/base and /srv/service hold.
func (p Project) LinkTarget() string { return filepath.Join("projects", p.Name) }

// StateRoots are where a release pair keeps its SLS files: the service's win over base's. base is
// empty on a host without one.
func StateRoots(service, base string) []string {
	return roots(service, "states", base)
}

// PillarRoots are where a release pair keeps its pillar.
func PillarRoots(service, base string) []string {
	return roots(service, "pillar", base)
}

// roots are the directories of a kind in a service's release and in base's; "" is a release that a host does not have.
func roots(service, dir, base string) (all []string) {
	if service != "" {
		all = append(all, filepath.Join(service, "salt", "config", dir))
	}
	if base != "" {
		all = append(all, filepath.Join(base, dir))
	}
	return all
}

// Hooks is the directory of a stage's hooks in a release.
func Hooks(release, stage string) string { return filepath.Join(release, "hooks", stage+".d") }
