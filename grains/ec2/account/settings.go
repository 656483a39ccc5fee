package account

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
)

// settings has the settings of the environment and a profile. The SDK's clients call the methods whose names start with
// Get.
type settings struct {
	profile  section
	services section // section of the profile with the endpoints of services
	switches map[string]bool
	mode     imds.EndpointModeState
	// invalid is the error of the first setting that cannot be parsed
	invalid error
}

// switches returns the names of the settings that are true or false.
func switches() []string {
	return []string{
		"use_fips_endpoint", "use_dualstack_endpoint", "ignore_configured_endpoint_urls", "disable_clock_skew_correction",
		"ec2_metadata_v1_disabled",
		"s3_use_arn_region", "s3_disable_multiregion_access_points", "s3_disable_express_session_auth",
	}
}

// variable returns the environment variable for a key of a profile.
func variable(key string) string { return "AWS_" + strings.ToUpper(key) }

// get returns a setting of the environment, or else of the profile.
func (s *settings) get(key string) string { return cmp.Or(os.Getenv(variable(key)), s.profile[key]) }

// parse parses a setting, and records the error if it is invalid.
func parse[T any](s *settings, key string, from func(string) (T, error)) (value T) {
	text := s.get(key)
	if text == "" {
		return value
	}
	value, err := from(text)
	if err != nil && s.invalid == nil {
		s.invalid = fmt.Errorf("%s, or %s of the profile: %w", variable(key), key, err)
	}
	return value
}

// readSettings parses the settings that are not text.
func readSettings(profile, services section) *settings {
	s := &settings{profile: profile, services: services, switches: map[string]bool{}}
	for _, key := range switches() {
		if os.Getenv(variable(key)) != "" {
			s.switches[key] = parse(s, key, yes)
		} else if text, is := profile[key]; is { // the SDK treats any other value as false
			s.switches[key] = strings.EqualFold(text, "true")
		}
	}
	parse(s, "ec2_metadata_service_endpoint_mode",
		func(text string) (struct{}, error) { return struct{}{}, s.mode.SetFromString(text) })
	return s
}

func yes(text string) (bool, error) {
	if text = strings.ToLower(text); text == "true" || text == "false" {
		return text == "true", nil
	}
	return false, fmt.Errorf("%q is neither true nor false", text)
}

// defaultsMode parses the name of a set of defaults of the SDK's clients. "auto" makes the SDK determine where it runs,
// which is only useful for programs outside of the region of their data: a host gets the defaults of a region.
func defaultsMode(text string) (mode aws.DefaultsMode, err error) {
	if !mode.SetFromString(text) {
		return "", fmt.Errorf("there is no mode %q", text)
	}
	if mode == aws.DefaultsModeAuto {
		mode = aws.DefaultsModeInRegion
	}
	return mode, nil
}

func requestChecksums(text string) (aws.RequestChecksumCalculation, error) {
	if supported, err := whenSupported(text); supported || err != nil {
		return aws.RequestChecksumCalculationWhenSupported, err
	}
	return aws.RequestChecksumCalculationWhenRequired, nil
}

func responseChecksums(text string) (aws.ResponseChecksumValidation, error) {
	if supported, err := whenSupported(text); supported || err != nil {
		return aws.ResponseChecksumValidationWhenSupported, err
	}
	return aws.ResponseChecksumValidationWhenRequired, nil
}

func whenSupported(text string) (bool, error) {
	if text = strings.ToLower(text); text == "when_supported" || text == "when_required" {
		return text == "when_supported", nil
	}
	return false, fmt.Errorf("%q is neither when_supported nor when_required", text)
}

func (s *settings) is(key string) (value, found bool) {
	value, found = s.switches[key]
	return value, found
}

// GetServiceBaseEndpoint returns the endpoint of one service.
func (s *settings) GetServiceBaseEndpoint(_ context.Context, service string) (string, bool, error) {
	name := strings.ReplaceAll(service, " ", "_")
	at := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_"+strings.ToUpper(name)), s.services[strings.ToLower(name)+"\nendpoint_url"])
	return at, at != "", nil
}

// GetIgnoreConfiguredEndpoints reports whether configured endpoints are ignored.
func (s *settings) GetIgnoreConfiguredEndpoints(context.Context) (value, found bool, err error) {
	value, found = s.is("ignore_configured_endpoint_urls")
	return value, found, nil
}

// GetUseDualStackEndpoint reports whether endpoints have IPv6 addresses too.
func (s *settings) GetUseDualStackEndpoint(context.Context) (aws.DualStackEndpointState, bool, error) {
	switch value, found := s.is("use_dualstack_endpoint"); {
	case !found:
		return aws.DualStackEndpointStateUnset, false, nil
	case value:
		return aws.DualStackEndpointStateEnabled, true, nil
	}
	return aws.DualStackEndpointStateDisabled, true, nil
}

// GetUseFIPSEndpoint reports whether FIPS endpoints are used.
func (s *settings) GetUseFIPSEndpoint(context.Context) (aws.FIPSEndpointState, bool, error) {
	switch value, found := s.is("use_fips_endpoint"); {
	case !found:
		return aws.FIPSEndpointStateUnset, false, nil
	case value:
		return aws.FIPSEndpointStateEnabled, true, nil
	}
	return aws.FIPSEndpointStateDisabled, true, nil
}

// GetS3UseARNRegion reports whether requests use the region in an ARN.
func (s *settings) GetS3UseARNRegion(context.Context) (value, found bool, err error) {
	value, found = s.is("s3_use_arn_region")
	return value, found, nil
}

// GetS3DisableMultiRegionAccessPoints reports whether access points of several regions are refused.
func (s *settings) GetS3DisableMultiRegionAccessPoints(context.Context) (value, found bool, err error) {
	value, found = s.is("s3_disable_multiregion_access_points")
	return value, found, nil
}

// GetS3DisableExpressAuth reports whether sessions of S3 Express are off.
func (s *settings) GetS3DisableExpressAuth() (value, found bool) {
	return s.is("s3_disable_express_session_auth")
}

// GetEC2IMDSClientEnableState reports whether the instance's metadata may be used.
func (s *settings) GetEC2IMDSClientEnableState() (imds.ClientEnableState, bool, error) {
	switch strings.ToLower(os.Getenv("AWS_EC2_METADATA_DISABLED")) {
	case "true":
		return imds.ClientDisabled, true, nil
	case "false":
		return imds.ClientEnabled, true, nil
	}
	return imds.ClientDefaultEnableState, false, nil
}

// GetEC2IMDSEndpoint returns the address of the instance's metadata service.
func (s *settings) GetEC2IMDSEndpoint() (string, bool, error) {
	at := s.get("ec2_metadata_service_endpoint")
	return at, at != "", nil
}

// GetEC2IMDSEndpointMode returns the IP version of the instance's metadata service.
func (s *settings) GetEC2IMDSEndpointMode() (imds.EndpointModeState, bool, error) {
	return s.mode, s.mode != imds.EndpointModeStateUnset, nil
}

// GetEC2IMDSV1FallbackDisabled reports whether metadata without a token is refused.
func (s *settings) GetEC2IMDSV1FallbackDisabled() (value, found bool) {
	return s.is("ec2_metadata_v1_disabled")
}
