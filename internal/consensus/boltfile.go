package consensus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// boltFile reads a bbolt file that may be damaged anywhere. bbolt itself trusts
// its file: a bad page ends the process, in part on goroutines where nobody can
// catch it, and a bad header takes it back by one write without a word. So the
// file is walked once, by plain reads, before bbolt maps it.
//
// The layout is bbolt's version 2, unchanged since boltdb: pages of pageSize
// bytes, two headers first, then a tree of branch and leaf pages for each
// bucket. Numbers are in the byte order of the machine.
type boltFile struct {
	r        io.ReaderAt
	size     int64 // of the file
	pageSize int64
	root     uint64          // page of the root bucket
	pages    uint64          // pages at or above this number are not in use
	seen     map[uint64]bool // pages met so far; each is used once
}

const (
	boltMagic      = 0xED0CDAED
	boltPageHeader = 16 // id u64, flags u16, count u16, overflow u32
	boltMeta       = 56 // without its checksum, 8 bytes more
	boltElement    = 16 // of a branch: pos, ksize u32, page u64; of a leaf: flags, pos, ksize, vsize u32
	boltBranch     = 1  // page flags
	boltLeaf       = 2
	boltBucket     = 1 // element flag: the value is a bucket
)

var errCutOff = errors.New("it is cut off")

// openBoltFile checks both header pages of a file of size bytes. bbolt is
// content with one, but each is a write of less than a sector, so that a bad
// one is no trace of a crash.
func openBoltFile(r io.ReaderAt, size int64) (*boltFile, error) {
	var metas [2][boltMeta + 8]byte
	pageSize := int64(0)
	for i := range metas {
		b := metas[i][:]
		if err := readAt(r, b, int64(i)*pageSize+boltPageHeader); err != nil {
			return nil, err
		}
		sum := fnv.New64a()
		sum.Write(b[:boltMeta])
		if binary.NativeEndian.Uint32(b) != boltMagic || sum.Sum64() != binary.NativeEndian.Uint64(b[boltMeta:]) {
			return nil, fmt.Errorf("header page %d is wrong", i)
		}
		if version := binary.NativeEndian.Uint32(b[4:]); version != 2 {
			return nil, fmt.Errorf("it has version %d of bbolt's layout, not 2", version)
		}
		pageSize = int64(binary.NativeEndian.Uint32(b[8:]))
	}
	newest := metas[0]
	if binary.NativeEndian.Uint64(metas[1][48:]) > binary.NativeEndian.Uint64(metas[0][48:]) { // transaction
		newest = metas[1]
	}
	f := &boltFile{
		r: r, size: size, pageSize: pageSize,
		root:  binary.NativeEndian.Uint64(newest[16:]),
		pages: binary.NativeEndian.Uint64(newest[40:]),
		seen:  map[uint64]bool{},
	}
	if f.pageSize < 512 || f.pageSize > 1<<20 || f.pages > 1<<40 {
		return nil, fmt.Errorf("it has %d pages of %d bytes", f.pages, f.pageSize)
	}
	return f, nil
}

// cut tells whether the file ends inside a page.
func (f *boltFile) cut() bool { return f.size%f.pageSize != 0 }

// readAt fills b from r.
func readAt(r io.ReaderAt, b []byte, at int64) error {
	_, err := r.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		return errCutOff
	}
	return err
}

// walk calls the function of each bucket for its keys, in order. A bucket
// without a function is an error. The slices are valid during the call.
func (f *boltFile) walk(buckets map[string]func(key, value []byte) error) error {
	return f.tree(f.root, nil, nil, func(name, header []byte, bucket bool) error {
		fn := buckets[string(name)]
		if fn == nil || !bucket || len(header) < 16 {
			return fmt.Errorf("%q is no bucket of the log", name)
		}
		visit := func(key, value []byte, bucket bool) error {
			if bucket {
				return fmt.Errorf("there is a bucket in %q", name)
			}
			return fn(key, value)
		}
		root := binary.NativeEndian.Uint64(header)
		if root == 0 { // a small bucket has its one page in its value
			return leaf(header[16:], nil, nil, visit)
		}
		return f.tree(root, nil, nil, visit)
	})
}

// tree visits the leaves below a page. All keys must be in low ≤ key < high;
// nil is no bound.
func (f *boltFile) tree(id uint64, low, high []byte, visit visitor) error {
	page, err := f.page(id)
	if err == nil && binary.NativeEndian.Uint16(page[8:]) == boltBranch {
		return f.branch(page, low, high, visit)
	}
	if err == nil {
		err = leaf(page, low, high, visit)
	}
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

// page reads a page with its overflow, for the first and only time.
func (f *boltFile) page(id uint64) ([]byte, error) {
	if id < 2 || id >= f.pages {
		return nil, errors.New("there is no such page")
	}
	page := make([]byte, f.pageSize)
	if err := readAt(f.r, page, int64(id)*f.pageSize); err != nil {
		return nil, err
	}
	overflow := uint64(binary.NativeEndian.Uint32(page[12:]))
	if binary.NativeEndian.Uint64(page) != id || overflow >= f.pages-id {
		return nil, errors.New("its header is wrong")
	}
	for i := id; i <= id+overflow; i++ {
		if f.seen[i] {
			return nil, errors.New("it is used twice")
		}
		f.seen[i] = true
	}
	if overflow == 0 {
		return page, nil
	}
	if (int64(id)+int64(overflow))*f.pageSize >= f.size {
		return nil, errCutOff
	}
	page = make([]byte, (int64(overflow)+1)*f.pageSize)
	return page, readAt(f.r, page, int64(id)*f.pageSize)
}

// branch visits the children of a page; each begins at or after its own key
// and ends before the next one's.
func (f *boltFile) branch(page, low, high []byte, visit visitor) error {
	count := int(binary.NativeEndian.Uint16(page[10:]))
	if count == 0 {
		return errors.New("a branch has no children")
	}
	keys := make([][]byte, count+1)
	for i := range count {
		var err error
		if keys[i], _, err = element(page, i, 0, 4, -1); err != nil {
			return err
		}
	}
	keys[count] = high
	for i, key := range keys[:count] {
		if bytes.Compare(key, low) < 0 || keys[i+1] != nil && bytes.Compare(key, keys[i+1]) >= 0 {
			return errors.New("the keys of a branch are out of order")
		}
		child := binary.NativeEndian.Uint64(page[boltPageHeader+i*boltElement+8:])
		if err := f.tree(child, key, keys[i+1], visit); err != nil {
			return err
		}
		low = key
	}
	return nil
}

// visitor is told of one key. The slices are valid during the call.
type visitor func(key, value []byte, bucket bool) error

// leaf visits the keys of a page.
func leaf(page, low, high []byte, visit visitor) error {
	if len(page) < boltPageHeader {
		return errCutOff
	}
	if flags := binary.NativeEndian.Uint16(page[8:]); flags != boltLeaf {
		return fmt.Errorf("it is of the unknown type %x", flags)
	}
	for i := range int(binary.NativeEndian.Uint16(page[10:])) {
		key, value, err := element(page, i, 4, 8, 12)
		if err != nil {
			return err
		}
		order := bytes.Compare(key, low)
		if order < 0 || order == 0 && i > 0 || high != nil && bytes.Compare(key, high) >= 0 {
			return errors.New("its keys are out of order")
		}
		low = key
		flags := binary.NativeEndian.Uint32(page[boltPageHeader+i*boltElement:])
		if err := visit(key, value, flags == boltBucket); err != nil {
			return err
		}
	}
	return nil
}

// element returns the key and value of element i of a page, whose position,
// counted from the element, and sizes are at the given places of it. A place
// of -1 stands for no value.
func element(page []byte, i, pos, keySize, valueSize int) (key, value []byte, err error) {
	start := boltPageHeader + i*boltElement
	if start+boltElement > len(page) {
		return nil, nil, errCutOff
	}
	field := func(at int) int64 { return int64(binary.NativeEndian.Uint32(page[start+at:])) }
	begin := int64(start) + field(pos)
	middle := begin + field(keySize)
	end := middle
	if valueSize >= 0 {
		end += field(valueSize)
	}
	if end > int64(len(page)) {
		return nil, nil, errCutOff
	}
	return page[begin:middle], page[middle:end], nil
}
