package store

import "golang.org/x/sys/windows"

func diskSpace(path string) (Space, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return Space{}, err
	}
	var s Space
	err = windows.GetDiskFreeSpaceEx(name, &s.Free, &s.Total, nil)
	return s, err
}
