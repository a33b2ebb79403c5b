/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The messages between the daemon and the helper process of a database, over a socket pair.
 * Included by both sides. One struct is one datagram (SOCK_SEQPACKET), so none is read in parts.
 * Never trusted: the daemon checks the size, type, texts and numbers of each message first.
 */
#ifndef IOSTALL_SQL_PROTOCOL_H
#define IOSTALL_SQL_PROTOCOL_H

#include <stdint.h>

#define SQL_NAME_SIZE 64
#define SQL_STATE_SIZE 64
#define SQL_ERROR_SIZE 256
#define SQL_PATH_SIZE 256
/* The maximum of sql.text_bytes, and the terminating NUL. */
#define SQL_TEXT_SIZE 4096
/* An error that begins so means: the session is still there, but the server does not answer. */
#define SQL_ERROR_UNRESPONSIVE "the server has not answered"
/* No process or thread has a higher number: PID_MAX_LIMIT of the kernel on 64-bit machines. */
#define SQL_PID_MAX 4194304
/* Ten years; no statement runs longer. */
#define SQL_ELAPSED_MAX_NS (3650ULL * 86400 * 1000000000)
/* Active sessions in one answer; further ones are only counted. */
#define SQL_SESSIONS_MAX 256
/* Sessions of one answer of which it is told what lock they wait for. */
#define SQL_LOCKS_MAX 256
/* Files of one server whose relation is known. */
#define SQL_RELATIONS_MAX 1024
#define SQL_RELATION_SIZE 128

enum sql_type {
	SQL_TYPE_NONE,
#define DATABASE(NAME, name, ...) SQL_TYPE_##NAME,
#include "sql/databases.def"
#undef DATABASE
	SQL_TYPE_COUNT,
};

enum sql_text_mode {
	SQL_TEXT_REDACTED = 1, /* each literal is replaced by ? */
	SQL_TEXT_FULL,
	SQL_TEXT_OFF, /* no text, but its length */
};

enum sql_frame_type {
	SQL_FRAME_SETUP = 1, /* daemon -> helper: the target; sent once, first */
	SQL_FRAME_ASK,	     /* daemon -> helper: asks for one snapshot */
	SQL_FRAME_GLANCE,    /* daemon -> helper: the same while idle, as cheap as it can be */
	SQL_FRAME_SERVER,    /* helper -> daemon: logged in, to this server */
	SQL_FRAME_SESSION,   /* helper -> daemon: one active session of the answer */
	SQL_FRAME_LOCK,	    /* helper -> daemon: one of them waits for a lock; after all sessions */
	SQL_FRAME_END,	    /* helper -> daemon: end of the answer, or why there is none */
	SQL_FRAME_RELATION, /* helper -> daemon, between two answers: what a file is */
	SQL_FRAME_DIRECTORY, /* helper -> daemon, between two answers: where such files are */
	SQL_FRAME_TYPE_COUNT,
};

struct sql_frame {
	uint32_t type;
	uint32_t size; /* of the whole datagram */
	uint64_t ask;  /* number of the question that it answers; 0: of none */
};

/* Texts are terminated. "" stands for the default of the client library or of the server. */
struct sql_frame_setup {
	struct sql_frame frame;
	uint32_t type;		    /* enum sql_type */
	uint32_t text_mode;	    /* enum sql_text_mode */
	uint32_t text_bytes;	    /* longer statements are cut; below SQL_TEXT_SIZE */
	uint32_t tls;		    /* for TCP: 1 with a verified certificate, 0 without TLS */
	uint32_t port;		    /* with host; 0: the default */
	char name[SQL_NAME_SIZE];   /* name of the target, for log lines */
	char socket[SQL_PATH_SIZE]; /* not used together with host */
	char host[SQL_PATH_SIZE];
	char user[SQL_NAME_SIZE];	   /* account of the database: "iostall" */
	char database[SQL_NAME_SIZE];	   /* a session of PostgreSQL needs one: "postgres" */
	char password_file[SQL_PATH_SIZE]; /* its first line; opened before root is given up */
	/*
	 * Read as user run_as: MariaDB uses [client] and [iostall], PostgreSQL the service
	 * [iostall].
	 */
	char option_file[SQL_PATH_SIZE];
	char run_as[SQL_NAME_SIZE]; /* user of this host: "iostall" */
	/*
	 * Who may listen at the socket beside root: name or number; "": the usual user of the type.
	 */
	char server_user[SQL_NAME_SIZE];
	char tls_ca[SQL_PATH_SIZE]; /* certificates of the issuers */
};

struct sql_frame_server {
	struct sql_frame frame;
	int32_t server_pid;	     /* main process, by SO_PEERCRED; 0: unknown */
	uint64_t identity;	     /* the same for each way to this running server; 0: unknown */
	uint32_t can_see_others;     /* 0: the account sees only its own sessions */
	uint32_t has_tid;	     /* 0: the server does not say which thread a session runs on */
	char version[SQL_NAME_SIZE]; /* "10.11.19-MariaDB" */
	char account[SQL_NAME_SIZE]; /* "iostall@localhost" */
	char missing[SQL_ERROR_SIZE]; /* the statement that grants missing rights; "" */
};

struct sql_frame_session {
	struct sql_frame frame;
	uint64_t connection_id;
	uint64_t query_id;   /* 0: the server has no such number */
	int32_t tid;	     /* thread, or process of PostgreSQL; 0: see no_tid */
	uint32_t background; /* a thread of the server itself, without a client */
	uint64_t elapsed_ns; /* how long the statement has run; 0: unknown */
	uint32_t idle; /* is in a transaction, but runs no statement: elapsed_ns is since then */
	uint64_t transaction_ns;    /* how long its transaction is open; 0: none, or unknown */
	uint32_t worker;	    /* a parallel worker, whose statement counts for its leader */
	int32_t leader_pid;	    /* the backend that it works for; 0: none, or unknown */
	uint32_t served;	    /* its reads that I/O workers of the server have in hand */
	char no_tid[SQL_NAME_SIZE]; /* why tid is 0: "thread pool"; "" */
	char user[SQL_NAME_SIZE];   /* "app@localhost" */
	char database[SQL_NAME_SIZE];
	char command[SQL_NAME_SIZE]; /* MariaDB's COMMAND, PostgreSQL's state */
	char state[SQL_STATE_SIZE];  /* MariaDB's STATE, PostgreSQL's wait event */
	uint32_t text_bytes;	     /* of the statement before it was cut */
	/*
	 * Full, redacted or empty, as sql.text says. The last member: only its used part is sent.
	 */
	char text[SQL_TEXT_SIZE];
};

struct sql_frame_lock {
	struct sql_frame frame;
	uint64_t connection_id; /* of the session that waits */
	uint64_t blocker_id;	/* of the one that it waits for; 0: unknown */
	uint64_t waited_ns;	/* 0: unknown */
	uint32_t lock;		/* enum record_lock */
	/* 0: the server says who blocks; else it is the likeliest of so many sessions. */
	uint32_t candidates;
	uint32_t
		has_no_session; /* what blocks is a transaction without one, as a prepared one is */
	char object[SQL_NAME_SIZE]; /* "shop.orders"; "" */
};

/* The server names its files by numbers. */
struct sql_frame_relation {
	struct sql_frame frame;
	uint32_t database;	      /* 0: of all databases */
	uint32_t file;		      /* relfilenode */
	char name[SQL_RELATION_SIZE]; /* "shop.public.orders" */
};

struct sql_frame_directory {
	struct sql_frame frame;
	char path[SQL_PATH_SIZE]; /* the data directory, or a tablespace */
};

/* How near a server is to the number of clients that it allows. */
struct sql_connections {
	uint32_t used;		  /* also by sessions that are idle */
	uint32_t allowed;	  /* for accounts without special rights; 0: unknown */
	uint32_t of_user;	  /* by the user who has most */
	uint32_t of_user_idle;	  /* those of them that do nothing */
	char user[SQL_NAME_SIZE]; /* "": unknown */
};

struct sql_frame_end {
	struct sql_frame frame;
	struct sql_connections connections;
	uint32_t sessions_left_out; /* active sessions beyond SQL_SESSIONS_MAX */
	uint32_t sessions_idle;
	uint32_t values_invalid;    /* numbers and rows that cannot be true, and so were dropped */
	uint64_t server_ns;	    /* how long the server took to answer */
	char error[SQL_ERROR_SIZE]; /* "": the answer is complete */
	char missing[SQL_ERROR_SIZE]; /* what to do after a refused login; "" */
	/* Start a new helper: it can open files as root, which this one cannot do any more. */
	uint32_t renew;
};

#endif
