import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.security.Permission;
import java.util.Arrays;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * The stock mqadmin, many commands in one JVM: a line of tab-separated arguments each. A first argument
 * of @N is for a command that never ends: it is interrupted once it has printed N lines. One of ~N gives
 * a command N milliseconds.
 */
public class Mqadmin {
    @SuppressWarnings("removal")
    public static void main(String[] unused) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = System.out;
        hastenShutdowns();
        outliveExits();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ByteArrayOutputStream said = new ByteArrayOutputStream();
            PrintStream to = new PrintStream(said, true);
            System.setOut(to);
            System.setErr(to);
            String[] words = line.isEmpty() ? new String[0] : line.split("\t");
            if (line.startsWith("@") || line.startsWith("~")) {
                String[] command = Arrays.copyOfRange(words, 1, words.length);
                int bound = Integer.parseInt(words[0].substring(1));
                if (line.startsWith("@")) {
                    runForLines(command, said, bound);
                } else {
                    runForMillis(command, bound);
                }
            } else {
                run(words, to);
            }
            to.flush();
            out.println(said);
            out.println("== end of output ==");
            out.flush();
        }
        System.setSecurityManager(null);
        // Tools leave threads behind.
        Runtime.getRuntime().halt(0);
    }

    /** A tool that is given too little prints its help and ends the JVM. */
    @SuppressWarnings("removal")
    private static void outliveExits() {
        System.setSecurityManager(new SecurityManager() {
            @Override
            public void checkExit(int status) {
                throw new SecurityException("exit " + status);
            }

            @Override
            public void checkPermission(Permission permission) {
            }
        });
    }

    private static void run(String[] words, PrintStream to) {
        try {
            MQAdminStartup.main0(words, null);
        } catch (Throwable error) {
            error.printStackTrace(to);
        }
    }

    private static void runForLines(String[] words, ByteArrayOutputStream said, int count) throws Exception {
        Thread command = new Thread(() -> run(words, System.out));
        command.start();
        for (int waited = 0; waited < 3000 && said.toString().lines().count() < count; waited++) {
            command.join(10);
        }
        command.interrupt();
        command.join();
    }

    private static void runForMillis(String[] words, int millis) throws Exception {
        Thread command = new Thread(() -> run(words, System.out));
        command.setDaemon(true);
        command.start();
        command.join(millis);
        if (command.isAlive()) {
            command.interrupt();
            command.join(millis);
            System.out.println("== had to be interrupted ==");
        }
    }

    /**
     * A tool that ends waits for a thread of its client that looks up every three seconds. Whoever
     * waits so is found by its stack, and that thread is woken: a run of hundreds takes a third.
     */
    private static void hastenShutdowns() {
        Thread helper = new Thread(() -> {
            while (true) {
                Thread.getAllStackTraces().forEach((thread, stack) -> {
                    if (Arrays.stream(stack).anyMatch(Mqadmin::waitsForAnEnd)) {
                        wakeEventThreads();
                    }
                });
                try {
                    Thread.sleep(20);
                } catch (InterruptedException end) {
                    return;
                }
            }
        });
        helper.setDaemon(true);
        helper.start();
    }

    private static boolean waitsForAnEnd(StackTraceElement frame) {
        return frame.getClassName().endsWith(".ServiceThread") && frame.getMethodName().equals("shutdown");
    }

    private static void wakeEventThreads() {
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (thread.getName().startsWith("NettyEventExecutor")) {
                thread.interrupt();
            }
        }
    }
}
