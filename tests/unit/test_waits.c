/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* What a thread waits for, by real stacks of kernels 5.10 to 7.2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "enrich/waits.h"
#include "util/cleanup.h"

static const struct {
	const char *stack;
	const char *waits_for;
} cases[] = {
	{ "io_schedule+0x46\nfolio_wait_bit_common+0x13d\nfilemap_get_pages+0x5f\nfilemap_read+0xd9\n"
	  "vfs_read+0x201",
		"page" },
	{ "io_schedule\nwait_on_page_bit_common\ngeneric_file_buffered_read\nnew_sync_read",
		"page" },
	{ "schedule+0x5e\njbd2_log_wait_commit+0xd0\next4_sync_file+0x1a5\ndo_fsync+0x38",
		"journal commit" },
	{ "schedule\nwait_transaction_locked\nadd_transaction_credits\nstart_this_handle",
		"journal commit" },
	{ "schedule\nio_schedule_timeout\nbalance_dirty_pages\nbalance_dirty_pages_ratelimited_flags\n"
	  "generic_perform_write",
		"dirty throttling" },
	/* ZFS, as users of it have reported. */
	{ "schedule_timeout\nio_schedule_timeout\n__cv_timedwait_common\n__cv_timedwait_io\n"
	  "zio_wait\ndbuf_read\ndnode_hold_impl\ndmu_buf_hold",
		"device" },
	{ "schedule\ncv_wait_common\n__cv_wait\nzil_lwb_flush_wait_all\nzil_sync", "log commit" },
	{ "cv_wait_common\n__cv_wait\nzil_commit.part.11\nzil_commit\nzfs_fsync\nzpl_fsync",
		"log commit" },
	{ "__mutex_lock.constprop.0\nmutex_lock\nzil_commit_writer\nzil_commit_impl", "mutex" },
	{ "schedule\nio_schedule\ncv_wait_common\n__cv_wait_io\ntxg_wait_synced_impl\n"
	  "txg_wait_synced\ndsl_sync_task_common",
		"transaction commit" },
	{ "cv_wait_common\n__cv_wait\ntxg_wait_open\ndmu_tx_wait\ndmu_tx_assign\nzfs_write",
		"transaction commit" },
	{ "percpu_rwsem_wait\n__percpu_down_read\nvfs_write\n__x64_sys_pwrite64",
		"frozen file system" },
	{ "percpu_rwsem_wait+0x15f\nvfs_write+0x3f0\n__x64_sys_pwrite64+0xa3",
		"frozen file system" },
	{ "percpu_rwsem_wait+0x15f\nlo_rw_aio.isra.0+0x33c\nloop_process_work+0x85",
		"frozen file system" },
	{ "percpu_rwsem_wait\ncgroup_attach_lock\ncgroup_procs_write_start", "control group lock" },
	{ "percpu_rwsem_wait\n__percpu_down_read\next4_page_mkwrite\ndo_page_mkwrite",
		"frozen file system" },
	{ "schedule\npercpu_rwsem_wait\npercpu_down_write\nfreeze_super", "frozen file system" },
	{ "schedule\n__sb_start_write\nmnt_want_write\npath_openat", "frozen file system" },
	/* Semaphores of the same kind: of control groups (a migration), CPUs, file locks, ext4. */
	{ "schedule\npercpu_rwsem_wait\n__percpu_down_read\nbegin_new_exec\nload_elf_binary\n"
	  "bprm_execve\ndo_execveat_common",
		"control group lock" },
	{ "percpu_rwsem_wait\n__percpu_down_read\ncgroup_can_fork\ncopy_process\nkernel_clone",
		"control group lock" },
	{ "percpu_rwsem_wait+0x9b\n__percpu_down_read+0x5b\nexit_signals+0x2f3\ndo_exit+0xb4",
		"control group lock" },
	{ "percpu_rwsem_wait\npercpu_down_write\ncgroup_attach_lock\ncgroup_update_dfl_csses",
		"control group lock" },
	{ "percpu_rwsem_wait\n__percpu_down_read\ncpus_read_lock\nkmem_cache_create",
		"read-write lock" },
	{ "percpu_rwsem_wait\npercpu_down_write\ncpus_write_lock\n_cpu_up", "" },
	{ "percpu_rwsem_wait\n__percpu_down_read\nposix_lock_inode\nfcntl_setlk",
		"read-write lock" },
	{ "percpu_rwsem_wait\n__percpu_down_read\next4_writepages\ndo_writepages",
		"read-write lock" },
	{ "io_schedule\nblk_mq_get_tag\n__blk_mq_alloc_requests\nblk_mq_submit_bio",
		"request slot" },
	{ "io_schedule\nrq_qos_wait\nwbt_wait\n__rq_qos_throttle", "block throttling" },
	{ "schedule\nrwsem_down_write_slowpath\ndown_write_killable\nvm_mmap_pgoff",
		"memory map lock" },
	/* As /proc/TID/stack has it, without the frames of the lock. */
	{ "vm_mmap_pgoff+0xc5\ndo_syscall_64+0x81", "memory map lock" },
	{ "ext4_buffered_write_iter+0x3d\nvfs_write+0x2a1", "read-write lock" },
	{ "schedule\nrwsem_down_write_slowpath\ndown_write\next4_buffered_write_iter",
		"read-write lock" },
	/* It has the lock. */
	{ "io_schedule\nfolio_wait_bit_common\next4_da_write_begin\next4_buffered_write_iter",
		"page" },
	{ "schedule\nrwsem_down_write_slowpath\ndown_write_killable\ndup_mm\ncopy_process",
		"memory map lock" },
	{ "schedule\nrwsem_down_read_slowpath\ndown_read_killable\n__access_remote_vm\n"
	  "access_remote_vm\nproc_pid_cmdline_read",
		"memory map lock" },
	{ "m_start+0x7a\nseq_read_iter+0x12c\nseq_read", "memory map lock" },
	{ "lock_mm_and_find_vma+0x61\ndo_user_addr_fault+0x1a3\nexc_page_fault+0x69",
		"memory map lock" },
	{ "schedule\nrwsem_down_write_slowpath\ndown_write\next4_buffered_write_iter",
		"read-write lock" },
	{ "io_schedule\nfolio_wait_bit_common\nfilemap_fault\n__do_fault\n__get_user_pages\n"
	  "populate_vma_page_range\n__mm_populate\nvm_mmap_pgoff",
		"page" },
	{ "io_schedule\n__iomap_dio_rw\niomap_dio_rw\next4_file_read_iter", "device" },
	/* What many reasons share gives way to the reason. */
	{ "io_schedule\nsubmit_bio_wait\nblkdev_issue_flush\next4_sync_file", "device flush" },
	{ "io_schedule\nfolio_wait_bit_common\nfolio_wait_writeback\n__filemap_fdatawait_range",
		"writeback" },
	{ "io_schedule\nsubmit_bio_wait\nblkdev_read\nvfs_read\nksys_read\nfilemap_fault",
		"device" },
	/* Whose memory it is, however deep the functions are that both reasons share. */
	{ "schedule_timeout\nreclaim_throttle\nshrink_node_memcgs\nshrink_node\ndo_try_to_free_pages\n"
	  "try_to_free_mem_cgroup_pages\ntry_charge_memcg\ncharge_memcg\n__mem_cgroup_charge",
		"memory of control group" },
	{ "schedule\nio_schedule\nshrink_folio_list\nshrink_inactive_list\nshrink_lruvec\nshrink_node_memcgs\n"
	  "shrink_node\ndo_try_to_free_pages\ntry_to_free_mem_cgroup_pages\nreclaim_high.constprop.0",
		"memory of control group" },
	{ "schedule_timeout_killable\nmem_cgroup_handle_over_high\nexit_to_user_mode_prepare",
		"memory of control group" },
	{ "schedule_timeout\nshrink_inactive_list\nshrink_lruvec\nshrink_node\ndo_try_to_free_pages\n"
	  "try_to_free_pages\n__alloc_pages_slowpath\nfilemap_fault",
		"memory" },
	{ "schedule\nshrink_node\nbalance_pgdat\nkswapd\nkthread", "memory" },
	/* Nothing is guessed. */
	{ "schedule\nfutex_wait_queue\nfutex_wait\ndo_futex", "" },
	{ "0xffffffff81000110\n0xffffffff81000205", "" },
	{ "", "" },
};

static void test_real_stacks(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(record_cause_text(waits_for(cases[i].stack)),
			cases[i].waits_for);
}

/* As the kernel has it in /proc/TID/wchan. */
static void test_function_outside_the_scheduler(void **state)
{
	char name[32];

	(void)state;
	waits_in("io_schedule+0x46\nfolio_wait_bit_common+0x13d\nfilemap_read+0xd9", name,
		sizeof(name));
	assert_string_equal(name, "folio_wait_bit_common");
	waits_in("schedule\nschedule_timeout\nio_schedule_timeout\nbalance_dirty_pages", name,
		sizeof(name));
	assert_string_equal(name, "balance_dirty_pages");
	waits_in("rwsem_down_write_slowpath+0x1", name, sizeof(name));
	assert_string_equal(name, "rwsem_down_write_slowpath");
	waits_in("schedule+0x1", name, sizeof(name));
	assert_string_equal(name, "schedule");
	waits_in("", name, sizeof(name));
	assert_string_equal(name, "");
}

static void test_stacks_of_an_interruption(void **state)
{
	(void)state;
	assert_string_equal(
		waits_skip_interrupt(
			"bpf_prog_1+0x67\nbpf_trace_run1+0x7\n"
			"__flush_smp_call_function_queue+0x8\nsysvec_call_function_single+0x1\n"
			"asm_sysvec_call_function_single+0x1\nclear_page_erms+0x7\n"
			"__get_user_pages+0x6d0"),
		"clear_page_erms+0x7\n__get_user_pages+0x6d0");
	assert_string_equal(waits_skip_interrupt("bpf_prog_1\nel1h_64_irq\nclear_page"),
		"clear_page");
	/* Where it was is not known: it was in user space, or the stack is too long. */
	assert_string_equal(waits_skip_interrupt("bpf_prog_1\nasm_sysvec_call_function_single"),
		"");
	assert_string_equal(waits_skip_interrupt("bpf_prog_1\nbpf_trace_run1"), "");
	assert_true(
		waits_is_interrupt("try_to_wake_up\nautoremove_wake_function\nblk_update_request\n"
				   "handle_irq_event\nasm_common_interrupt"));
	assert_true(waits_is_interrupt("try_to_wake_up\nblk_done_softirq\n__do_softirq"));
	assert_false(waits_is_interrupt("try_to_wake_up\nwake_up_q\nfutex_wake\ndo_syscall_64"));
	assert_true(waits_holds_map("clear_page_erms\n__get_user_pages\n__mm_populate"));
	assert_false(waits_holds_map("rwsem_down_write_slowpath\ndown_write\n__vm_munmap"));
}

static void test_whose_memory_map_it_is(void **state)
{
	(void)state;
	assert_true(waits_for_map_of_other("rwsem_down_read_slowpath\ndown_read_killable\n"
					   "__access_remote_vm\nproc_pid_cmdline_read"));
	assert_true(waits_for_map_of_other("m_start+0x7a\nseq_read_iter+0x12c"));
	assert_false(waits_for_map_of_other("rwsem_down_write_slowpath\nvm_mmap_pgoff"));
	/* It has that lock and waits for its own: a page fault while it copies the result. */
	assert_false(waits_for_map_of_other("lock_mm_and_find_vma\nexc_page_fault\nm_start"));
}

/* The lock is taken inline, so only the kernel can tell whether the thread waits for it. */
static void test_what_may_be_the_lock_of_an_inode(void **state)
{
	static const char stack[] = "ext4_file_write_iter+0x60f\nvfs_write+0x22f";

	(void)state;
	assert_int_equal(waits_for(stack), RECORD_CAUSE_NONE);
	assert_true(waits_may_be_for_inode(stack));
	assert_false(waits_may_be_for_inode("iomap_dio_rw\next4_file_write_iter"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real_stacks),
		cmocka_unit_test(test_function_outside_the_scheduler),
		cmocka_unit_test(test_stacks_of_an_interruption),
		cmocka_unit_test(test_whose_memory_map_it_is),
		cmocka_unit_test(test_what_may_be_the_lock_of_an_inode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
