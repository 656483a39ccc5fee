// Package ec2 determines the identity of a host from Amazon EC2 if its hostname does not follow the convention.
//
// An auto scaling group starts hosts without meaningful names. The name of the group follows the convention: it
// contains service, instance and region, and the instance ID distinguishes the hosts of a group. The metadata service
// of the instance provides the ID, and the name of the group if instance tags are allowed in metadata, which requires
// no permission. Otherwise the EC2 API is queried for the tag, with the credentials of the instance's role, which
// must allow ec2:DescribeTags.
//
// Version 2 of the metadata service is used, since a program that can only be tricked into fetching a URL cannot use
// it. Version 1 is used only if Options allow it.
//
// The metadata is usually read only once per host: a state sets the hostname from the grains, and later runs read the
// identity from the hostname.
package ec2

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// groupTag is the tag that EC2 puts on instances of an auto scaling group.
const groupTag = "aws:autoscaling:groupName"

const (
	defaultEndpoint = "http://169.254.169.254"
	endpointEnv     = "AWS_EC2_METADATA_SERVICE_ENDPOINT"
)

// ErrNoMetadata is the error if no metadata service answers: this is not an EC2 instance, or its requests are blocked.
var ErrNoMetadata = errors.New("no EC2 instance metadata")

// Options configure the queries. The zero Options are right on EC2.
type Options struct {
	// Endpoint is the metadata service; "" means AWS_EC2_METADATA_SERVICE_ENDPOINT, and without it the usual address.
	Endpoint string
	// API is EC2's API; "" means the one of the instance's region.
	API string
	// AllowV1 allows version 1 of the metadata service if version 2 is not available.
	AllowV1 bool
	// Timeout limits each request to the metadata service; 0 means 900 milliseconds.
	Timeout time.Duration
	// APITimeout limits the request to EC2's API, including all attempts; 0 means ten seconds.
	APITimeout time.Duration
}

// Host is the EC2 instance on which this program runs. It keeps the responses, and is not safe for concurrent use. It
// is a grains.Cloud.
type Host struct {
	options  Options
	metadata *imds.Client
	line     *line
	document *imds.InstanceIdentityDocument
}

// New returns the instance on which this program runs. It makes no request yet.
func New(o Options) *Host {
	o.Endpoint = cmp.Or(o.Endpoint, os.Getenv(endpointEnv), defaultEndpoint)
	o.Timeout = cmp.Or(o.Timeout, 900*time.Millisecond)
	o.APITimeout = cmp.Or(o.APITimeout, 10*time.Second)
	l := newLine()
	return &Host{options: o, line: l, metadata: imds.New(imds.Options{
		Endpoint:       o.Endpoint,
		HTTPClient:     l,
		EnableFallback: aws.BoolTernary(o.AllowV1),
		Retryer: retry.NewStandard(func(s *retry.StandardOptions) {
			s.MaxAttempts = 2
			s.MaxBackoff = 50 * time.Millisecond
		}),
		DisableDefaultMaxBackoff: true, // the default is one second
	})}
}

// Likely reports, without a request, whether this machine looks like an EC2 instance: by its firmware, or because the
// environment sets a metadata service. machine is a tree to read in place of the machine's own, "" for none.
func Likely(machine string) bool {
	if os.Getenv(endpointEnv) != "" {
		return true
	}
	for file, sign := range map[string]string{
		"sys/class/dmi/id/sys_vendor":   "Amazon EC2",
		"sys/class/dmi/id/bios_version": ".amazon",
		"sys/hypervisor/uuid":           "ec2",
	} {
		text, err := os.ReadFile(filepath.Join(cmp.Or(machine, "/"), file))
		if err == nil && strings.Contains(string(text), sign) {
			return true
		}
	}
	return false
}

// Place returns the region in the form of hostnames, such as useast1 for us-east-1, and as node the instance ID without
// its i-. Outside of EC2 the error wraps ErrNoMetadata.
func (h *Host) Place(ctx context.Context) (region, node string, err error) {
	doc, err := h.identify(ctx)
	if err != nil {
		return "", "", err
	}
	return strings.ReplaceAll(doc.Region, "-", ""), strings.TrimPrefix(doc.InstanceID, "i-"), nil
}

// Instance returns the region and the instance ID in EC2's notation, such as us-east-1 and i-0123456789abcdef0. Outside
// of EC2 the error wraps ErrNoMetadata.
func (h *Host) Instance(ctx context.Context) (region, id string, err error) {
	doc, err := h.identify(ctx)
	if err != nil {
		return "", "", err
	}
	return doc.Region, doc.InstanceID, nil
}

// Group returns the name of the auto scaling group that started this instance. Outside of EC2 the error wraps
// ErrNoMetadata.
func (h *Host) Group(ctx context.Context) (string, error) {
	doc, err := h.identify(ctx)
	if err != nil {
		return "", err
	}
	name, err := h.tagFromMetadata(ctx)
	if err != nil || name != "" {
		return name, err
	}
	return h.tagFromAPI(ctx, doc)
}

func (h *Host) identify(ctx context.Context) (*imds.InstanceIdentityDocument, error) {
	if h.document != nil {
		return h.document, nil
	}
	ctx, stop := context.WithTimeout(ctx, h.options.Timeout)
	defer stop()
	answer, err := h.metadata.GetInstanceIdentityDocument(ctx, nil)
	if err != nil {
		return nil, h.explain(err)
	}
	if answer.Region == "" || answer.InstanceID == "" {
		return nil, fmt.Errorf("%w: the service at %s names no region and instance", ErrNoMetadata, h.options.Endpoint)
	}
	h.document = &answer.InstanceIdentityDocument
	return h.document, nil
}

// explain returns an error for people in place of an error or timeout of the metadata service.
func (h *Host) explain(err error) error {
	at := h.options.Endpoint
	switch h.line.status {
	case 0:
		return diag.Identity.Hint(fmt.Errorf("%w: nothing answers at %s: %w", ErrNoMetadata, at,
			innermost(cmp.Or(h.line.err, err))),
			"on EC2, see that metadata is enabled for the instance, and in a container that its hop limit is 2")
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return diag.Identity.Hint(fmt.Errorf("%w: the service at %s has no version 2", ErrNoMetadata, at),
			"enable version 2 (IMDSv2), or allow version 1")
	case http.StatusForbidden, http.StatusUnauthorized:
		return diag.Identity.Hint(fmt.Errorf("%w: the service at %s refuses to answer", ErrNoMetadata, at),
			"enable metadata for the instance")
	}
	return fmt.Errorf("EC2 instance metadata at %s: status %d: %w", at, h.line.status, innermost(err))
}

// tagFromMetadata returns the tag, or "" if tags are not allowed in metadata or there is no such tag.
func (h *Host) tagFromMetadata(ctx context.Context) (string, error) {
	ctx, stop := context.WithTimeout(ctx, h.options.Timeout)
	defer stop()
	answer, err := h.metadata.GetMetadata(ctx, &imds.GetMetadataInput{Path: "tags/instance/" + groupTag})
	switch {
	case err != nil && h.line.status == http.StatusNotFound:
		return "", nil
	case err != nil:
		return "", h.explain(err)
	}
	defer answer.Content.Close()
	name, err := io.ReadAll(io.LimitReader(answer.Content, 1<<10))
	if err != nil {
		return "", h.explain(err)
	}
	return strings.TrimSpace(string(name)), nil
}

// innermost returns the first error of a chain. The errors around it only describe the client's steps.
func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
