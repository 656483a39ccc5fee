package needs

// Constants of the format ELF. Package debug/elf has them, too, and a reader of debugging data that no host needs.
const (
	magic        = "\x7fELF"
	identSize    = 16
	classIndex   = 4
	dataIndex    = 5
	class32      = 1
	class64      = 2
	littleEndian = 1
	bigEndian    = 2

	executable = 2
	shared     = 3

	i386    = 3
	ppc64   = 21
	s390x   = 22
	arm     = 40
	amd64   = 62
	arm64   = 183
	riscv64 = 243

	loadPart        = 1
	dynamicPart     = 2
	interpreterPart = 3

	lastTag         = 0
	textsTag        = 5
	textsSizeTag    = 10
	definedTag      = 0x6ffffffc
	definedCountTag = 0x6ffffffd
	neededTag       = 0x6ffffffe
	neededCountTag  = 0x6fffffff
)
