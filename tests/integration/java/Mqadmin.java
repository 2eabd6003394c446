import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Arrays;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * The stock mqadmin, many commands in one JVM: a line of tab-separated arguments each. A first argument
 * of @N is for a command that never ends: it is interrupted once it has printed N lines.
 */
public class Mqadmin {
    public static void main(String[] unused) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = System.out;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ByteArrayOutputStream said = new ByteArrayOutputStream();
            PrintStream to = new PrintStream(said, true);
            System.setOut(to);
            System.setErr(to);
            String[] words = line.split("\t");
            if (words[0].startsWith("@")) {
                runForLines(Arrays.copyOfRange(words, 1, words.length), said, Integer.parseInt(words[0].substring(1)));
            } else {
                run(words, to);
            }
            to.flush();
            out.println(said);
            out.println("== end of output ==");
            out.flush();
        }
        // Tools leave threads behind.
        Runtime.getRuntime().halt(0);
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
}
