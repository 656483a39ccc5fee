package compute

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// plannedVolumes are the volumes that the run makes or attaches, by the names of their states. States that choose
// volumes by their properties plan for them, too.
type plannedVolumes struct {
	mu  sync.Mutex
	all map[string]plannedVolume
}

// plannedVolume is a volume as it will be: without an ID if the run makes it.
type plannedVolume struct {
	types.Volume
	instance string // the name of the instance that it is attached to
}

func volumesPlanned(a *cloud.Account) (*plannedVolumes, error) {
	return cloud.Remember(a, "planned volumes", func() (*plannedVolumes, error) {
		return &plannedVolumes{all: map[string]plannedVolume{}}, nil
	})
}

// expect notes the volume as the plan leaves it.
func (v *volumePresent) expect(a *cloud.Account, has *types.Volume, instance string) {
	will := *has
	if will.VolumeId == nil {
		will.Tags = []types.Tag{{Key: sdk.String("Name"), Value: sdk.String(v.title())}}
		will.Encrypted, will.SnapshotId = &v.Encrypted, &v.Snapshot
	}
	if v.Size != nil {
		will.Size = cloud.Int32s(v.Size)
	}
	will.VolumeType = cmp.Or(types.VolumeType(v.Type), will.VolumeType)
	will.Attachments = []types.VolumeAttachment{{InstanceId: &instance, Device: &v.Device}}
	planned, err := volumesPlanned(a)
	if err != nil {
		return
	}
	planned.mu.Lock()
	defer planned.mu.Unlock()
	planned.all[v.title()] = plannedVolume{Volume: will, instance: v.InstanceName}
}

// matching returns the planned volumes, with the names of their states, that the filters of an entry of tag_maps choose
// and that are not among those that AWS has shown.
func (s *plannedVolumes) matching(filters *value.Map, shown []types.Volume,
	called func(name string) string) map[string]plannedVolume {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]plannedVolume{}
	for name, v := range s.all {
		known := slices.ContainsFunc(shown, func(other types.Volume) bool {
			return v.VolumeId != nil && sdk.ToString(other.VolumeId) == *v.VolumeId ||
				v.VolumeId == nil && network.NameOf(other.Tags) == name
		})
		if !known && v.passes(filters, called) {
			all[name] = v
		}
	}
	return all
}

// passes reports whether a planned volume passes all filters. One whose property is not known yet does not.
func (v plannedVolume) passes(filters *value.Map, called func(name string) string) bool {
	for key, want := range filters.All() {
		name := value.Str(key)
		if name == "instance_name" {
			if v.instance == "" || v.instance != called(value.Str(want)) {
				return false
			}
			continue
		}
		has := v.property(name)
		if !slices.ContainsFunc(cloud.Texts(want), func(pattern string) bool {
			return slices.ContainsFunc(has, func(one string) bool { return wildcard(pattern, one) })
		}) {
			return false
		}
	}
	return true
}

// wildcard reports whether a text matches a pattern of a filter of AWS, with * and ?.
func wildcard(pattern, text string) bool {
	plain := strings.NewReplacer("/", "\x00", "[", "\\[")
	ok, err := path.Match(plain.Replace(pattern), strings.ReplaceAll(text, "/", "\x00"))
	return ok && err == nil
}

// property returns the values that a filter of AWS compares.
func (v plannedVolume) property(filter string) (all []string) {
	if key, ok := strings.CutPrefix(filter, "tag:"); ok {
		for _, t := range v.Tags {
			if sdk.ToString(t.Key) == key {
				all = append(all, sdk.ToString(t.Value))
			}
		}
		return all
	}
	switch filter {
	case "tag-key":
		for _, t := range v.Tags {
			all = append(all, sdk.ToString(t.Key))
		}
		return all
	case "size":
		return []string{strconv.Itoa(int(sdk.ToInt32(v.Size)))}
	case "encrypted":
		return []string{strconv.FormatBool(sdk.ToBool(v.Encrypted))}
	case "volume-type":
		return []string{string(v.VolumeType)}
	case "volume-id":
		return []string{sdk.ToString(v.VolumeId)}
	case "snapshot-id":
		return []string{sdk.ToString(v.SnapshotId)}
	case "attachment.device":
		return []string{sdk.ToString(v.Attachments[0].Device)}
	case "attachment.instance-id":
		return []string{sdk.ToString(v.Attachments[0].InstanceId)}
	}
	return nil
}
